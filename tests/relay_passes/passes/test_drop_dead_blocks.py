"""What a fused function computes for nobody is dropped; everything else stays."""

import numpy as np
import tvm
from tvm import relax, s_tir, tirx
from tvm.script import tirx as T

import tvm_rammer
from tests.functions import TARGET, relax_module
from tvm_rammer.relay_passes import partition, prepare
from tvm_rammer.relay_passes.passes.drop_dead_blocks import DropDeadBlocks

op = relax.op


def middle_unused():
    def build(x):
        parts = op.split(op.tanh(x), 3, axis=1)
        return op.add(op.exp(parts[0]), parts[2])

    return relax_module([(4, 12)], build)


@T.prim_func(s_tir=True, private=True)
def chain(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    dead = T.sblock_alloc_buffer((4,))
    deader = T.sblock_alloc_buffer((4,))
    total = T.sblock_alloc_buffer((4,))
    for i in range(4):
        with T.sblock("dead"):
            v = T.axis.spatial(4, i)
            dead[v] = x[v] + T.float32(1)
    for i in range(4):
        with T.sblock("deader"):
            v = T.axis.spatial(4, i)
            deader[v] = dead[v] + T.float32(1)
    for i, j in T.grid(4, 4):
        with T.sblock("total"):
            v, w = T.axis.remap("SR", [i, j])
            with T.init():
                total[v] = T.float32(0)
            total[v] = total[v] + x[w]
    for i in range(4):
        with T.sblock("result"):
            v = T.axis.spatial(4, i)
            y[v] = total[v]


@T.prim_func(s_tir=True, private=True)
def renamed(x: T.Buffer((4, 2), "float32"), y: T.Buffer((4,), "float32")):
    doubled = T.sblock_alloc_buffer((4, 2))
    dead = T.sblock_alloc_buffer((4,))
    for i, j in T.grid(4, 2):
        with T.sblock("doubled"):
            v, w = T.axis.remap("SS", [i, j])
            doubled[v, w] = x[v, w] * T.float32(2)
    for i in range(4):
        with T.sblock("dead"):
            v = T.axis.spatial(4, i)
            dead[v] = x[v, 0]
    for i in range(4):
        with T.sblock("result"):
            v = T.axis.spatial(4, i)
            T.reads(doubled[v, 0:2])
            T.writes(y[v])
            row = T.match_buffer(doubled[v, 0:2], (2,), offset_factor=1)
            y[v] = row[0] + row[1]


def blocks(mod):
    (func,) = [f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)]
    sch = s_tir.Schedule(func)
    return [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_sblock("root"))]


def test_an_unused_part_of_a_split_is_not_computed():
    mod = prepare(TARGET)(middle_unused())
    assert sorted(blocks(mod)) == ["T_add", "T_split_sections", "T_split_sections_2", "compute", "compute1"]
    assert len(partition(mod).regions) == 1


def test_a_chain_of_dead_blocks_goes_whole_and_sums_stay():
    mod = DropDeadBlocks()(tvm.IRModule({"main": chain}))
    assert blocks(mod) == ["total", "result"]
    assert blocks(DropDeadBlocks()(mod)) == ["total", "result"]


def test_what_is_read_under_another_name_stays():
    mod = DropDeadBlocks()(tvm.IRModule({"main": renamed}))
    assert blocks(mod) == ["doubled", "result"]


def test_where_all_is_used_nothing_changes():
    mod = prepare(TARGET)(relax_module([(4, 4)], lambda x: op.sum(op.exp(x), axis=1)))
    assert DropDeadBlocks()(mod).same_as(mod)


def test_results_are_the_same_on_both_kinds_of_devices():
    mod = middle_unused()
    x = np.random.default_rng(0).standard_normal((4, 12)).astype("float32")
    want = np.exp(np.tanh(x[:, :4])) + np.tanh(x[:, 8:])
    np.testing.assert_allclose(tvm_rammer.compile(mod)(x), want, rtol=1e-5)
    report = tvm_rammer.compile(mod, target="cuda:h200").report()
    assert (report["left_to_stock"], report["rprogram_launches"]) == (0, 1)
