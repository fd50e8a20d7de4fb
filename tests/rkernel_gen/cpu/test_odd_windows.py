"""Functions that are windows but for one part: the rule reads that part, or leaves the function to another one."""

import pytest
import tvm
from tvm import tirx
from tvm.script import tirx as T

from tests.functions import random_arrays
from tests.fuzz.judge.kernels import judge_kernels
from tests.marks import one_in
from tvm_rammer.rkernel_gen.cpu.window.read import find_window

CONVOLUTION = {
    "image": "(1, 6, 8, 8)", "weight": "(4, 3, 3, 3)", "condition": "1 <= i and i < 9 and 1 <= j and j < 9",
    "row": "i - 1", "fill": "0.0", "init": "0.0", "channel": "f // 2 * 3 + c", "line": "i + a", "tap": "w[f, c, a, b]",
    "update": "s[n, f, i, j] + {}", "out": "s[n, f, i, j] + z[n, f, i, j]",
}  # fmt: skip
"""A convolution of 2 groups of 3 channels and 2 filters, padded by one element, and the sum with another image."""

TEXT = """
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer({image}, "float32"), w: T.Buffer({weight}, "float32"),
         z: T.Buffer((1, 4, 8, 8), "float32"), y: T.Buffer((1, 4, 8, 8), "float32")):
    p = T.sblock_alloc_buffer((1, 6, 10, 10))
    s = T.sblock_alloc_buffer((1, 4, 8, 8))
    for n0, c0, i0, j0 in T.grid(1, 6, 10, 10):
        with T.sblock("p"):
            n, c, i, j = T.axis.remap("SSSS", [n0, c0, i0, j0])
            p[n, c, i, j] = T.if_then_else({condition}, x[n, c, {row}, j - 1], T.float32({fill}))
    for n0, f0, i0, j0, c0, a0, b0 in T.grid(1, 4, 8, 8, 3, 3, 3):
        with T.sblock("s"):
            n, f, i, j, c, a, b = T.axis.remap("SSSSRRR", [n0, f0, i0, j0, c0, a0, b0])
            with T.init():
                s[n, f, i, j] = T.float32({init})
            s[n, f, i, j] = {update}
    for n0, f0, i0, j0 in T.grid(1, 4, 8, 8):
        with T.sblock("y"):
            n, f, i, j = T.axis.remap("SSSS", [n0, f0, i0, j0])
            y[n, f, i, j] = {out}
"""


def convolution(**other: str) -> tirx.PrimFunc:
    """The convolution with other parts."""
    parts = CONVOLUTION | other
    update = parts["update"].format(f"p[n, {parts['channel']}, {parts['line']}, j + b] * {parts['tap']}")
    return tvm.script.from_source(TEXT.format(**(parts | {"update": update})), extra_vars={"T": T})


READ = {
    "as an operator has it": {},
    "padded with ones": {"fill": "1.0"},
    "sums that begin with one": {"init": "1.0"},
    "conditions turned around": {"condition": "i >= 1 and 9 > i and 0 < j and j <= 8"},
    "nothing above the image": {"condition": "i < 8 and 1 <= j and j < 9", "row": "i"},
}

REFUSED = {
    "a row of the image is padding": {"condition": "2 <= i and i < 9 and 1 <= j and j < 9"},
    "the last row of the image is padding": {"condition": "1 <= i and i < 8 and 1 <= j and j < 9"},
    "odd rows are padding": {"condition": "1 <= i and i < 9 and 1 <= j and j < 9 and i % 2 == 0"},
    "a corner is padding": {"condition": "1 <= i and i < 9 and 1 <= j and j < 9 and i + j < 15"},
    "a channel is padding": {"condition": "1 <= i and i < 9 and 1 <= j and j < 9 and c < 5"},
    "a larger image": {"image": "(1, 6, 9, 8)"},
    "rows upside down": {"row": "8 - i"},
    "a row is repeated": {"row": "T.min(i - 1, 6)"},
    "a row is read twice by the window": {"line": "T.min(i + a, 8)"},
    "rows are further apart at the end": {"line": "T.min(i + a + i // 6, 9)"},
    "rows depend on the filter": {"line": "(i + a + f) % 10"},
    "groups take turns": {"channel": "f % 2 * 3 + c"},
    "groups of unlike size": {"channel": "(f + 1) // 3 * 3 + c"},
    "channels of groups alternate": {"channel": "f // 2 + c * 2"},
    "weights of a larger array": {"weight": "(5, 3, 3, 3)"},
    "weights upside down": {"tap": "w[f, c, 2 - a, b]"},
    "the term first": {"update": "{} + s[n, f, i, j]"},
    "no sum": {"update": "z[n, f, i, j] + {}"},
    "sums of other elements": {"update": "s[n, f, i, 7 - j] + {}"},
    "the product is scaled": {"update": "s[n, f, i, j] + {} * T.float32(0.5)"},
    "the image times itself": {"tap": "p[n, c, i, j]"},
    "the padded image is read again": {"out": "s[n, f, i, j] + p[n, f, i, j]"},
    "results are read from the right": {"out": "s[n, f, i, 7 - j] + z[n, f, i, j]"},
}


@pytest.mark.parametrize("name", [*READ, *REFUSED])
def test_only_what_is_proven_is_read(name: str) -> None:
    func = convolution(**(READ | REFUSED)[name])
    try:
        window = find_window(func)
    except tvm.s_tir.schedule.ScheduleError:
        window = None
    assert (window is not None) == (name in READ)
    verdict = judge_kernels(func, random_arrays(func)[:-1], weights=True)
    assert verdict.fault == ""
    assert ("window" in verdict.rules) == (name in READ) and verdict.rules


@T.prim_func(private=True, s_tir=True)
def part_of_an_image(
    x: T.Buffer((1, 8, 9, 9), "float32"), w: T.Buffer((8, 8, 1, 1), "float32"), y: T.Buffer((1, 8, 7, 7), "float32")
) -> None:
    for n0, f0, i0, j0, c0, a0, b0 in T.grid(1, 8, 7, 7, 8, 1, 1):
        with T.sblock("y"):
            n, f, i, j, c, a, b = T.axis.remap("SSSSRRR", [n0, f0, i0, j0, c0, a0, b0])
            with T.init():
                y[n, f, i, j] = T.float32(0)
            y[n, f, i, j] = y[n, f, i, j] + x[n, c, i + a, j + b] * w[f, c, a, b]


@T.prim_func(private=True, s_tir=True)
def maximum_over_ones(x: T.Buffer((1, 8, 9, 9), "float32"), y: T.Buffer((1, 8, 9, 9), "float32")) -> None:
    p = T.sblock_alloc_buffer((1, 8, 11, 11))
    for n0, c0, i0, j0 in T.grid(1, 8, 11, 11):
        with T.sblock("p"):
            n, c, i, j = T.axis.remap("SSSS", [n0, c0, i0, j0])
            p[n, c, i, j] = T.if_then_else(i >= 1 and i < 10 and j >= 1 and j < 10, x[n, c, i - 1, j - 1], T.float32(1))
    for n0, f0, i0, j0, a0, b0 in T.grid(1, 8, 9, 9, 3, 3):
        with T.sblock("y"):
            n, f, i, j, a, b = T.axis.remap("SSSSRR", [n0, f0, i0, j0, a0, b0])
            with T.init():
                y[n, f, i, j] = T.float32(-0.5)
            y[n, f, i, j] = T.max(y[n, f, i, j], p[n, f, i + a, j + b])


@T.prim_func(private=True, s_tir=True)
def upsampled_in_part(
    x: T.Buffer((1, 4, 6), "float32"), w: T.Buffer((4, 5, 3), "float32"), y: T.Buffer((1, 5, 9), "float32")
) -> None:
    u = T.sblock_alloc_buffer((1, 4, 9))
    p = T.sblock_alloc_buffer((1, 4, 11))
    for n0, c0, j0 in T.grid(1, 4, 9):
        with T.sblock("u"):
            n, c, j = T.axis.remap("SSS", [n0, c0, j0])
            u[n, c, j] = T.if_then_else(j % 2 == 0, x[n, c, j // 2], T.float32(0))
    for n0, c0, j0 in T.grid(1, 4, 11):
        with T.sblock("p"):
            n, c, j = T.axis.remap("SSS", [n0, c0, j0])
            p[n, c, j] = T.if_then_else(j >= 1 and j < 10, u[n, c, j - 1], T.float32(0))
    for n0, f0, j0, c0, b0 in T.grid(1, 5, 9, 4, 3):
        with T.sblock("y"):
            n, f, j, c, b = T.axis.remap("SSSRR", [n0, f0, j0, c0, b0])
            with T.init():
                y[n, f, j] = T.float32(0)
            y[n, f, j] = y[n, f, j] + p[n, c, j + b] * w[c, f, 2 - b]


@T.prim_func(private=True, s_tir=True)
def two_outputs(
    x: T.Buffer((1, 4, 9), "float32"), s: T.Buffer((1, 4, 7), "float32"), y: T.Buffer((1, 4, 7), "float32")
) -> None:
    for n0, f0, j0, b0 in T.grid(1, 4, 7, 3):
        with T.sblock("s"):
            n, f, j, b = T.axis.remap("SSSR", [n0, f0, j0, b0])
            with T.init():
                s[n, f, j] = T.float32(0)
            s[n, f, j] = s[n, f, j] + x[n, f, j + b]
    for n0, f0, j0 in T.grid(1, 4, 7):
        with T.sblock("y"):
            n, f, j = T.axis.remap("SSS", [n0, f0, j0])
            y[n, f, j] = T.max(s[n, f, j], T.float32(0))


OTHERS = {
    "part of an image": (part_of_an_image, 1, True),
    "maximum over ones": (maximum_over_ones, 1, True),
    "upsampled in part": (upsampled_in_part, 1, False),
    "two outputs": (two_outputs, 2, False),
}


@pytest.mark.parametrize("name", one_in(3, OTHERS))
def test_other_windows(name: str) -> None:
    func, outputs, read = OTHERS[name]
    assert (find_window(func) is not None) == read
    verdict = judge_kernels(func, random_arrays(func)[:-outputs], weights=True)
    assert verdict.fault == "" and ("window" in verdict.rules) == read
