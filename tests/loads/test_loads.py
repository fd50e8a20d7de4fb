"""The passes on loads: what they rewrite, what they leave alone, and that the results are the same."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.script import tirx as T

from tvm_rammer.loads.batches import MAX_BATCH, batch_loads
from tvm_rammer.loads.choices import overlap_loads
from tvm_rammer.loads.sums import keep_sums

CPU = tvm.target.Target({"kind": "llvm", "opt-level": 0})


@T.prim_func(s_tir=True)
def padded(x: T.Buffer((30,), "float32"), y: T.Buffer((40,), "float32")):
    for i in range(40):
        y[i] = T.if_then_else(i >= 5 and i < 35, x[i - 5], T.float32(-1))


@T.prim_func(s_tir=True)
def nested(a: T.Buffer((8,), "float32"), b: T.Buffer((6,), "float32"), y: T.Buffer((20,), "float32")):
    for i in range(20):
        y[i] = T.if_then_else(
            i < 8, a[i], T.max(T.if_then_else(i >= 10 and i < 16, b[i - 10], T.float32(2)), T.float32(0))
        )


@T.prim_func(s_tir=True)
def guarded(x: T.Buffer((37,), "float32"), z: T.Buffer((1,), "float32"), y: T.Buffer((48,), "float32")):
    for i in range(3):
        for j in range(16):
            if i * 16 + j < 37:
                y[i * 16 + j] = x[i * 16 + j] * z[0]


@T.prim_func(s_tir=True)
def added(x: T.Buffer((9, 35), "float32"), y: T.Buffer((9,), "float32")):
    for i in range(9):
        for j in range(35):
            if j == 0:
                y[i] = T.float32(0)
            y[i] = y[i] + x[i, j]


@T.prim_func(s_tir=True)
def prefix(x: T.Buffer((20,), "float32"), y: T.Buffer((20,), "float32")):
    for i in range(19):
        y[i + 1] = y[i] + x[i]


@T.prim_func(s_tir=True)
def looked_up(x: T.Buffer((20,), "float32"), at: T.Buffer((20,), "int32"), y: T.Buffer((20,), "float32")):
    for i in range(20):
        y[i] = x[at[i]]


def flat(func):
    """A function as TVM lowers it, with flat buffers."""
    return tirx.transform.FlattenBuffer()(tvm.IRModule({"main": func}))["main"]


def results(func, seed=0):
    """The last parameter after a run on random numbers."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        shape, dtype = [int(n) for n in param.shape], str(param.dtype)
        arrays.append(rng.integers(0, 20, shape).astype(dtype) if "int" in dtype else rng.random(shape, dtype))
    arrays[-1][...] = 7
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    with tvm.transform.PassContext(config={"tirx.disable_cse_tir": True}):  # it does not work where there is a Let
        executable = tvm.compile(func.with_attr("global_symbol", "main"), target=CPU)
    executable["main"](*tensors)
    return tensors[-1].numpy()


def everything(func):
    return overlap_loads(batch_loads(keep_sums(func)))


@pytest.mark.parametrize("func", [padded, nested, guarded, added, prefix, looked_up])
def test_results_are_the_same(func):
    np.testing.assert_array_equal(results(everything(flat(func))), results(flat(func)))


def conditional_loads(func):
    """Loads within the arms of a choice."""
    found = []

    def choice(call):
        if call.op.name.endswith("if_then_else"):
            tvm_ffi.structural_walk(list(call.args)[1:], [(TensorLoad, found.append)], order="pre")

    tvm_ffi.structural_walk(func.body, [(tvm.ir.Call, choice)], order="pre")
    return found


@pytest.mark.parametrize("func", [padded, nested])
def test_no_load_is_in_a_choice(func):
    assert conditional_loads(flat(func)) and not conditional_loads(overlap_loads(flat(func)))


def test_all_terms_of_a_condition_are_computed():
    assert " and " in str(flat(padded)) and " and " not in str(overlap_loads(flat(padded)))


def loops(func):
    found = []
    tvm_ffi.structural_walk(func.body, [(tirx.For, lambda loop: found.append(int(loop.extent)))], order="pre")
    return found


def test_loads_of_a_batch_come_before_its_stores():
    assert loops(batch_loads(flat(padded))) == [3, 14, 14]
    assert loops(batch_loads(flat(guarded))) == [3, MAX_BATCH, MAX_BATCH, MAX_BATCH]


@pytest.mark.parametrize("func", [prefix, looked_up])
def test_loads_that_depend_on_a_store_or_a_load_stay(func):
    assert tvm_ffi.structural_equal(batch_loads(flat(func)).body, flat(func).body)


def test_a_sum_is_kept_in_a_register():
    inner = []
    tvm_ffi.structural_walk(keep_sums(flat(added)).body, [(tirx.For, inner.append)], order="pre")
    stored = []
    tvm_ffi.structural_walk(inner[-1], [(tirx.BufferStore, lambda s: stored.append(s.buffer))], order="pre")
    assert {str(buffer.scope()) for buffer in stored} == {"local"}
    assert tvm_ffi.structural_equal(keep_sums(flat(prefix)).body, flat(prefix).body)
