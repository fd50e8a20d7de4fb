"""Functions whose blocks claim what is not true are scheduled by no rule, and stay as they are on a CPU."""

from collections import Counter

import pytest
import tvm
from tvm import tirx
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import TARGET, fused, random_arrays
from tests.fuzz.judge.kernels import judge_kernels
from tvm_rammer.benchmark import operators
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.relay_passes import load_model, prepare
from tvm_rammer.rkernel_gen.analysis.affine import distinct, linear
from tvm_rammer.rkernel_gen.analysis.claims import false_claim
from tvm_rammer.rkernel_gen.construct import choose
from tvm_rammer.rkernel_gen.tiling import Function

SUM = {"shape": "(16, 12)", "axes": "(16, 12)", "loops": "i0, k0", "i": "i0", "k": "k0", "claims": "", "place": "i"}
"""The sums of rows."""

TEXT = """
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer({shape}, "float32"), y: T.Buffer((16,), "float32")):
    for {loops} in T.grid{axes}:
        with T.sblock("y"):
            i = T.axis.spatial(16, {i})
            k = T.axis.reduce(12, {k})
            {claims}
            with T.init():
                y[{place}] = T.float32(0)
            y[{place}] = y[{place}] + x[i, k]
"""


def sums(**other: str) -> tirx.PrimFunc:
    return tvm.script.from_source(TEXT.format(**(SUM | other)), extra_vars={"T": T})


PROVEN = {
    "plain": {},
    "loops in another order": {"loops": "k0, i0", "axes": "(12, 16)"},
    "a loop in two": {"loops": "o0, i0, k0", "axes": "(4, 4, 12)", "i": "o0 * 4 + i0"},
    "a condition that always holds": {"claims": "T.where(i0 < 16)"},
    "upside down": {"place": "15 - i"},
    "more is read than needed": {"claims": "T.reads(x[i, 0:12])"},
}

FALSE = {
    "nothing is read": ({"claims": "T.reads()"}, "reads what its T.reads leaves out"),
    "another row is read": ({"claims": "T.reads(x[15 - i, k])"}, "reads what its T.reads leaves out"),
    "more is written": ({"claims": "T.writes(y[0:16])"}, "does not write all of its T.writes"),
    "some terms are left out": ({"claims": "T.where(k0 < 5)"}, "does not run once for each value of its axes"),
    "two sums in one place": ({"place": "i // 2"}, "may write an element more than once"),
    "all sums in one place": ({"place": "0"}, "may write an element more than once"),
    "each block twice": (
        {"loops": "o0, i0, k0", "axes": "(2, 16, 12)"}, "does not run once for each value of its axes",
    ),
    "a row is left out": ({"axes": "(15, 12)"}, "does not run once for each value of its axes"),
    "rows overlap": (
        {"loops": "o0, i0, k0", "axes": "(4, 4, 12)", "i": "o0 * 3 + i0"},
        "does not run once for each value of its axes",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVEN)
def test_true_claims_are_proven(name: str) -> None:
    func = sums(**PROVEN[name])
    assert false_claim(func) == ""
    verdict = judge_kernels(func, random_arrays(func)[:-1], weights=False)
    assert verdict.fault == "" and verdict.rules


@pytest.mark.parametrize("name", FALSE)
def test_others_are_not_believed(name: str) -> None:
    parts, flaw = FALSE[name]
    func = sums(**parts)
    assert false_claim(func) == f"the block y {flaw}"
    dropped: Counter[str] = Counter()
    (kernel,) = choose(Function("f", func, host_cpu()), dropped=dropped)
    assert kernel.spec.num_rtasks == 1 and dropped["a block claims what is not proven"]
    assert judge_kernels(func, random_arrays(func)[:-1], weights=False).fault == ""
    assert choose(Function("f", func, preset("cuda:h200"))) == ()


def test_blocks_that_read_what_others_write_are_not_moved() -> None:
    @T.prim_func(private=True, s_tir=True)
    def running_sum(x: T.Buffer((16,), "float32"), y: T.Buffer((17,), "float32")) -> None:
        for i0 in range(16):
            with T.sblock("y"):
                i = T.axis.spatial(16, i0)
                y[i + 1] = y[i] + x[i]

    assert false_claim(running_sum) == "the block y reads elements that other iterations write"


def in_rows(place: str, read: str) -> tirx.PrimFunc:
    """A block for each row, whose own loop goes over the row's elements."""
    text = f"""
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer((16, 4), "float32"), y: T.Buffer((20, 4), "float32")):
    for i0 in range(16):
        with T.sblock("y"):
            i = T.axis.spatial(16, i0)
            for n in range(4):
                y[{place}] = y[{read}] + x[i, n]
"""
    return tvm.script.from_source(text, extra_vars={"T": T})


def test_loops_within_blocks_are_told_from_their_axes() -> None:
    assert false_claim(in_rows("i, n", "i, n")) == false_claim(in_rows("i, n", "i, 3 - n")) == ""
    assert "an element more than once" in false_claim(in_rows("i + n, 0", "i + n, 0"))
    assert "other iterations write" in false_claim(in_rows("i, n", "i + 1, n"))
    assert "other iterations write" in false_claim(in_rows("i, n", "n, n"))


OPERATORS = {
    "convolution": ([(1, 6, 9, 9), (8, 6, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "softmax": ([(6, 40)], op.nn.softmax),
    "concat": ([(2, 3, 5), (2, 4, 5)], lambda x, y: op.concat([x, y], axis=1)),
    "reshape": ([(4, 6)], lambda x: op.reshape(x, (3, 8))),
    "flip": ([(4, 6)], lambda x: op.flip(x, axis=1)),
    "transposed": ([(1, 4, 5, 5), (4, 6, 3, 3)], lambda x, w: op.nn.conv2d_transpose(x, w, strides=2)),
    "resize": ([(1, 3, 5, 5)], lambda x: op.image.resize2d(x, (8, 9), layout="NCHW", method="linear")),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_tvm_claim_nothing_false(name: str) -> None:
    assert false_claim(fused(*OPERATORS[name])) == ""


def test_what_sums_and_indices_are() -> None:
    x, y = (tirx.Var(name, "int64") for name in "xy")
    assert linear(3 * x - 2 * y + 5 + x, [x, y]) == (4, -2, 5)
    assert linear(x // 2, [x]) is linear(x * y, [x, y]) is linear(x + y, [x]) is linear(tirx.max(x, 0), [x]) is None
    extents = {x: 6, y: 5}
    for indices in ([x, y], [5 * x + y], [x, x + y], [4 - x, 2 * y + 1], [x // 2, x % 2, y], [7 - x, y // 1]):
        assert distinct(indices, extents), indices
    for indices in ([x], [4 * x + y], [x + y], [x // 2, y], [x // 2, x % 3, y], [x * y, y]):
        assert not distinct(indices, extents), indices


@pytest.mark.parametrize("name", operators.OPERATORS)
def test_operators_that_are_measured_are_proven(name):
    """What is not runs as it is, number by number, in one rTask."""
    mod = prepare(TARGET)(load_model(operators.OPERATORS[name].model()))
    functions = [f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)]
    assert functions
    assert {false_claim(f) for f in functions} == {""}
