"""The weights of the next block of filters are asked for ahead: every line of them, and few more than once."""

import math

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.ir import Call

from tests.functions import fused, run
from tests.rkernel_gen.cpu.test_window import conv
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.filters.rule import FILTERS_RULE
from tvm_rammer.rkernel_gen.cpu.window.ahead import LINE
from tvm_rammer.rkernel_gen.cpu.window.rule import WINDOW_RULE
from tvm_rammer.rkernel_gen.cpu.winograd.rule import WINOGRAD_RULE
from tvm_rammer.rkernel_gen.tiling import Function

MOST_ASKED = 1.5
"""Lines that are asked for, relative to those that there are: parts of some lines are rounded up."""
CONVOLUTIONS = {
    "3x3": ([(1, 64, 14, 14), (96, 64, 3, 3)], {"padding": 1}),
    "1x1": ([(1, 128, 10, 10), (192, 128, 1, 1)], {}),
    "1x1 at a stride": ([(1, 64, 21, 21), (96, 64, 1, 1)], {"strides": 2}),
    "2 groups": ([(1, 64, 9, 9), (192, 32, 3, 3)], {"padding": 1, "groups": 2}),
    "many channels": ([(1, 1024, 7, 7), (96, 1024, 1, 1)], {}),
}
RULES = {"filters": FILTERS_RULE, "window": WINDOW_RULE, "winograd": WINOGRAD_RULE}


def counting(func, weight):
    """A function that counts, in one more parameter, how often each line of the weights is asked for."""
    lines = math.prod(int(n) for n in weight.shape) // LINE
    counts = tirx.decl_buffer((2 * lines,), "int32", "counts")

    def count(node):
        if not (isinstance(node.value, Call) and node.value.op.name == "tirx.prefetch"):
            return node
        load = node.value.args[0].args[0]
        if not load.source.same_as(weight):
            return node
        element = 0
        for index, extent in zip(load.indices, weight.shape, strict=True):
            element = element * extent + index
        return tirx.BufferStore(counts, counts[element // LINE] + 1, [element // LINE])

    def serial(loop):
        return tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, loop.body)

    def one_by_one(loop):
        return serial(loop) if loop.kind == tirx.ForKind.PARALLEL else loop

    body = tvm_ffi.structural_map(func.body, [(tirx.Evaluate, count), (tirx.For, one_by_one)], order="post")
    return tirx.PrimFunc([*func.params, counts], body).with_attr("s_tir", True), lines


def tilings_of(rule, function):
    """The fastest of one rTask, of several ones, and of those that add the channels block by block."""
    found = sorted(rule.tilings(function), key=lambda tiling: tiling.operator_us(1))
    kinds = {}
    for tiling in found:
        choices = dict(tiling.choices)
        kinds.setdefault(
            (choices["filter_parts"] > 1, choices["row_parts"] > 1, choices.get("sum_parts", 1) > 1), tiling
        )
    return list(kinds.values())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_each_line_of_the_weights_is_asked_for(name, rule):
    shapes, options = CONVOLUTIONS[name]
    function = Function("conv", fused(shapes, lambda x, w: conv(x, w, **options)), host_cpu(), frozenset({1}))
    tilings = tilings_of(RULES[rule], function)
    if rule == "winograd" and options.get("padding") is None:
        assert not tilings
        return
    assert len(tilings) > 1
    for tiling in tilings:
        kernel, choices = RULES[rule].build(function, dict(tiling.choices)), dict(tiling.choices)
        assert kernel is not None
        weight = kernel.func.params[1]
        func, lines = counting(kernel.func, weight)
        arrays = [np.zeros([int(n) for n in p.shape], str(p.dtype)) for p in func.params]
        asked = run(func, arrays)[:lines]
        # Before its first block, an rTask asks for nothing; and for no other if it has only one.
        blocks = math.prod(int(n) for n in weight.shape[: 2 if rule == "filters" else 1])
        if blocks == choices["filter_parts"] * choices["group_parts"] and rule != "winograd":
            assert not asked.any()
            continue
        # Where channels are added block by block, nobody asks for all of the first block of a part of the filters.
        sums, parts = choices.get("sum_parts", 1), choices["filter_parts"] * choices["group_parts"]
        is_later = np.ones((sums, parts, blocks // (sums * parts)), bool)
        is_later[0, :, 0] = sums == 1
        later = asked.reshape(blocks, -1)[is_later.reshape(blocks)]
        assert later.min() >= 1, choices
        # Each part of the rows asks for itself, and each time that it goes through all blocks.
        assert asked.sum() <= MOST_ASKED * max(later.min(), choices["row_parts"]) * lines, choices
