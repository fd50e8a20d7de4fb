"""Loops over the same rows are one, and so are loops along memory; workers share what is long."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx, topi
from tvm.script import ir as I
from tvm.script import tirx as T

import tvm_rammer
from tests.relay_passes.models import by_onnxruntime, model, node, random, tensor, value
from tvm_rammer.kernel import SPREAD
from tvm_rammer.relay_passes.passes.elements import spread_rounds
from tvm_rammer.relay_passes.passes.elements.inline import InlineElements
from tvm_rammer.relay_passes.passes.elements.join_loops import JoinLoops
from tvm_rammer.relay_passes.passes.sums.lanes import SumInLanes
from tvm_rammer.relay_passes.passes.sums.tile import TileSums

from .functions import function_of, loops, module_of, run


def softmax(x):
    return topi.nn.softmax(x, axis=-1)


def turned(x):
    """Reads the rows of another one in the other order."""
    square = topi.multiply(x, x)
    return topi.add(topi.flip(square, axis=0), square)


def bias(x, b):
    return topi.nn.relu(topi.add(x, b))


def of(rows, shape, seed=0):
    return random(*(rows if n == "n" else n for n in shape), seed=seed)


def outermost(mod) -> list[tirx.For]:
    body = function_of(mod).body.block.body
    statements = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
    return [statement for statement in statements if isinstance(statement, tirx.For)]


def allocated(mod) -> list[int]:
    """How many elements each buffer within the loops has."""
    found = []

    def visit(node: tirx.AllocBuffer) -> None:
        found.append(int(np.prod([int(n) for n in node.buffer.shape])))

    for loop in outermost(mod):
        tvm_ffi.structural_walk(loop, (tirx.AllocBuffer, visit), order="pre")
    return found


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_the_steps_of_a_softmax_are_one_loop_over_its_rows(rows):
    mod = module_of(softmax, (("n", 3, 40), "float32"))
    made = JoinLoops()(SumInLanes(64)(InlineElements()(mod)))
    assert len(outermost(made)) == 1
    assert max(allocated(made)) <= 3 * 40  # of one round, not of all
    x = of(rows, ("n", 3, 40))
    np.testing.assert_allclose(run(made, [x]), run(mod, [x]), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_what_other_rows_need_is_computed_before(rows):
    mod = module_of(turned, (("n", 5), "float32"))
    made = JoinLoops()(InlineElements()(mod))
    x = of(rows, ("n", 5))
    np.testing.assert_array_equal(run(made, [x]), run(mod, [x]))
    assert not allocated(made)


@pytest.mark.parametrize(
    ("shapes", "left"),
    [
        ([("n", 4), ("n", 4)], 1),
        ([("n", 7, 3), (7, 3)], 2),
        ([("n", 7, 3), (7, 1)], 3),
        ([(3, "n"), (3, 1)], 2),
        ([("n", 3, 50, 50), (1, 1)], 3),
    ],
    ids=["all", "of a row", "a number for each", "divisions", "long enough"],
)
def test_loops_along_memory_are_one(shapes, left):
    mod = module_of(bias, *((shape, "float32") for shape in shapes))
    made = JoinLoops()(InlineElements()(mod))
    nests = outermost(made)
    depth = [0]

    def visit(_node: tirx.For) -> None:
        depth[0] += 1

    tvm_ffi.structural_walk(nests[-1], (tirx.For, visit), order="pre")
    assert depth[0] == left
    for rows in (0, 1, 5):
        arrays = [of(rows, shape, seed) for seed, shape in enumerate(shapes)]
        np.testing.assert_array_equal(run(made, arrays), run(mod, arrays))


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), ("n", 4, 0), ("n", 0, 4)])
def test_no_elements(shape):
    mod = module_of(bias, (shape, "float32"), (shape, "float32"))
    x = of(2, shape)
    assert run(JoinLoops()(SumInLanes(64)(InlineElements()(mod))), [x, x]).shape == x.shape


def test_chunks_and_the_rest_of_them(monkeypatch):
    monkeypatch.setattr(spread_rounds, "CHUNK", 8)
    mod = module_of(bias, (("n", 3), "float32"), (("n", 3), "float32"))
    made = JoinLoops()(InlineElements()(mod))
    assert loops(made) == 3
    for rows in (0, 1, 2, 3, 8, 11, 16):
        arrays = [random(rows, 3), random(rows, 3, seed=1)]
        np.testing.assert_array_equal(run(made, arrays), run(mod, arrays))


def marks(mod) -> list[int]:
    return [int(loop.annotations[SPREAD]) for loop in outermost(mod) if SPREAD in loop.annotations]


def test_how_many_rounds_are_worth_waking_somebody():
    assert marks(JoinLoops()(module_of(bias, (("n", 64, 64), "float32"), ((1, 1), "float32")))) == [8]
    assert marks(JoinLoops()(InlineElements()(module_of(bias, (("n", 4), "float32"), ((4,), "float32"))))) == [1 << 14]
    assert marks(JoinLoops()(module_of(bias, ((2, 4), "float32"), ((4,), "float32")))) == []


def test_rounds_that_need_each_other_are_not_shared():
    mod = module_of(turned, (("n", 4096), "float32"))
    for loop in outermost(JoinLoops()(mod)):  # each by itself is: it writes its rows, and reads another tensor
        assert SPREAD in loop.annotations
    own = module_of(lambda x: topi.cumsum(x, axis=0), (("n", 4096), "float32"))
    assert JoinLoops()(own).same_as(own)


def test_a_loop_around_what_is_shared_is_not():
    """Of one image the filters are shared, so the loop over images stays as it is; its bias is added in it."""

    def compute(x, w, b):
        return topi.add(topi.nn.conv2d_nchw(x, w, 1, 0, 1, "float32"), b)

    shapes = [("n", 16, 30, 30), (64, 16, 3, 3), (64, 1, 1)]
    made = JoinLoops()(TileSums(64)(InlineElements()(module_of(compute, *((shape, "float32") for shape in shapes)))))
    (images,) = outermost(made)
    inner: list[tirx.For] = []
    tvm_ffi.structural_walk(images.body, (tirx.For, inner.append), order="pre")
    assert SPREAD not in images.annotations
    assert sum(SPREAD in loop.annotations for loop in inner) == 1


CHAIN = [
    node("NonZero", ["c"], ["found"]),
    node("Reshape", ["found", "all"], ["rows"]),
    node("Gather", ["x", "rows"], ["r"]),
    node("Add", ["r", "b"], ["a"]),
    node("Sigmoid", ["a"], ["s"]),
    node("Mul", ["a", "s"], ["m"]),
    node("Softmax", ["m"], ["y"], axis=-1),
    node("ReduceMean", ["m"], ["z"], axes=[1, 2], keepdims=0),
]


@pytest.mark.parametrize("chosen", [0, 1, 5, 300])
def test_workers_compute_what_one_thread_does(chosen):
    """Of 300 rows the loops are shared; of one they are not."""
    constants = [tensor("all", np.array([-1])), tensor("b", random(7, 1, seed=3))]
    proto = model(CHAIN, [value("x", [300, 7, 64]), value("c", [300])], ["y", "z"], constants, opset=13)
    feeds = {"x": random(300, 7, 64), "c": (np.arange(300) < chosen).astype("float32")}
    many, one = (tvm_rammer.compile(proto, threads=n, cache=False) for n in (4, 1))
    for got, alone, want in zip(many(**feeds), one(**feeds), by_onnxruntime(proto, **feeds), strict=True):
        np.testing.assert_array_equal(got, alone)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_callers_loops_of_32_bits_stay():
    source = """
@I.ir_module
class Own:
    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((5, 7), "float32"), y: T.Buffer((5, 7), "float32")):
        t = T.sblock_alloc_buffer((5, 7))
        for i, j in T.grid(5, 7):
            with T.sblock("t"):
                r, c = T.axis.remap("SS", [i, j])
                t[r, c] = x[r, c] * T.float32(2)
        for i, j in T.grid(5, 7):
            with T.sblock("y"):
                r, c = T.axis.remap("SS", [i, j])
                y[r, c] = t[r, c] + T.float32(1)
"""
    mod = tvm.script.from_source(source, extra_vars={"I": I, "T": T})
    assert JoinLoops()(SumInLanes(64)(InlineElements()(mod))).same_as(mod)
