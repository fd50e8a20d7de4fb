"""Which functions are proven to do nothing but copy, and which bytes they copy to where."""

import math

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import fused
from tvm_rammer.ir import ITEM_BYTES, Move
from tvm_rammer.rkernel_gen.analysis.copies import moves_of


def moves(shapes, build, **how):
    return moves_of(fused(shapes, build, **how), len(shapes))


WHOLE = (Move(0, 0, 0, 0, 4 * 120),)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: op.reshape(x, (6, 20)),
        lambda x: op.reshape(x, (120,)),
        lambda x: op.flatten(x),
        lambda x: op.expand_dims(x, [0, 2]),
        lambda x: op.reshape(op.reshape(x, (3, 40)), (1, 8, 15)),
        lambda x: op.permute_dims(op.reshape(x, (1, 120)), (1, 0)),
    ],
)
def test_another_shape_is_one_piece(build):
    assert moves([(2, 4, 15)], build) == WHOLE


def test_an_axis_of_one_comes_and_goes():
    assert moves([(1, 8, 1, 15)], lambda x: op.squeeze(x)) == WHOLE


@pytest.mark.parametrize(
    "build",
    [
        lambda x: op.permute_dims(x, (0, 2, 1)),
        lambda x: op.flip(x, 0),
        lambda x: op.nn.relu(x),
        lambda x: op.astype(x, "float64"),
        lambda x: op.reshape(op.permute_dims(x, (1, 0, 2)), (120,)),
        lambda x: op.strided_slice(x, [1], [0], [2]),
        lambda x: op.strided_slice(x, [0], [1], [-3], [-1]),
        lambda x: op.concat([x, x], axis=1),
        lambda x: op.broadcast_to(op.reshape(x, (1, 120)), (2, 120)),
        lambda x: op.nn.pad(x, [0, 0, 1, 0, 0, 0]),
    ],
)
def test_what_computes_or_reorders_is_no_copy(build):
    assert moves([(2, 4, 15)], build) is None


def test_a_concatenation_has_a_piece_for_each_part():
    shapes = [(1, 2, 3, 5), (1, 4, 3, 5), (1, 1, 3, 5)]
    want = (Move(0, 0, 0, 0, 120), Move(1, 0, 0, 120, 240), Move(2, 0, 0, 360, 60))
    assert moves(shapes, lambda *parts: op.concat(parts, axis=1)) == want


def test_a_split_has_a_piece_for_each_output():
    want = (Move(0, 0, 0, 0, 80), Move(0, 80, 1, 0, 240), Move(0, 320, 2, 0, 160))
    assert moves([(1, 120)], lambda x: op.split(x, [20, 80], axis=1)) == want


def test_a_slice_of_outermost_rows():
    want = (Move(0, 3 * 40, 0, 0, 2 * 40),)
    assert moves([(6, 10)], lambda x: op.strided_slice(x, [0], [3], [5])) == want


def test_the_same_part_twice():
    func = fused([(2, 8)], lambda x: op.concat([x, x], axis=0))
    inputs = len(func.params) - 1
    assert moves_of(func, inputs) == (Move(0, 0, 0, 0, 64), Move(inputs - 1, 0, 0, 64, 64))


def test_a_chain_of_copies_within_one_function():
    def chain(x, y):
        both = op.concat([op.reshape(x, (1, 40)), y], axis=1)
        return op.reshape(op.strided_slice(both, [1], [20], [80]), (2, 30))

    got = moves([(5, 8), (1, 60)], chain)
    assert got == (Move(0, 80, 0, 0, 80), Move(1, 0, 0, 80, 160))


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_moves_count_in_bytes(dtype):
    item = ITEM_BYTES[dtype]
    got = moves([(3, 8), (2, 8)], lambda x, y: op.concat([x, y], axis=0), dtype=dtype)
    assert got == (Move(0, 0, 0, 0, 24 * item), Move(1, 0, 0, 24 * item, 16 * item))


def test_a_block_that_leaves_elements_out_is_no_copy():
    @T.prim_func(s_tir=True)
    def half(x: T.Buffer((8, 4), "float32"), y: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(x[vi, vj])
                T.writes(y[vi, vj])
                y[vi, vj] = x[vi, vj]

    assert moves_of(half, 1) is None


def test_an_index_that_depends_on_data_is_no_copy():
    def pick(x):
        return op.take(x, relax.const(np.array([1, 0], "int64")), axis=0)

    assert moves([(2, 16)], pick) is None


@pytest.mark.parametrize("seed", range(12))
def test_moves_do_what_the_function_does(seed):
    """A random chain of copies: run by TVM, and by its moves."""
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4))) for _ in range(2)]

    def build(*xs):
        flat = [op.reshape(x, (math.prod(s),)) for x, s in zip(xs, shapes, strict=True)]
        whole = op.concat([flat[i] for i in rng.permutation(2)], axis=0)
        size = sum(math.prod(s) for s in shapes)
        first = int(rng.integers(0, size))
        end = int(rng.integers(first, size)) + 1
        return op.expand_dims(op.strided_slice(whole, [0], [first], [end]), 0)

    func = fused(shapes, build, dtype="int64")
    found = moves_of(func, 2)
    assert found is not None
    *inputs, output = ([int(n) for n in param.shape] for param in func.params)
    arrays = [np.arange(math.prod(s), dtype="int64").reshape(s) + 1000 * i for i, s in enumerate(inputs)]
    result = np.full(math.prod(output), -1, "int64")
    moved = result.copy()
    tensors = [tvm.runtime.tensor(a) for a in (*arrays, result.reshape(output))]
    tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")["main"](*tensors)
    for m in found:
        source = arrays[m.source].reshape(-1).view(np.uint8)
        moved.view(np.uint8)[m.target_start :][: m.nbytes] = source[m.source_start :][: m.nbytes]
    np.testing.assert_array_equal(moved, tensors[-1].numpy().reshape(-1))
