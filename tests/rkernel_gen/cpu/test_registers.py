"""The accumulators of a register tile stay in registers: nothing is stored to the stack between their multiply-adds."""

import re

import pytest
import tvm
from tvm.relax import op

from tests.functions import best_of_each_size, fused
from tests.rkernel_gen.cpu.test_window import DEVICES, conv
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.rkernel_gen.cpu.filters.rule import FILTERS_RULE
from tvm_rammer.rkernel_gen.cpu.window.rule import WINDOW_RULE
from tvm_rammer.rkernel_gen.cpu.winograd.rule import WINOGRAD_RULE
from tvm_rammer.rkernel_gen.tiling import Function

MULTIPLY_ADDS = 8
"""A loop with as many is that of a register tile."""
PROCESSORS = ("avx2", "avx512")
MIN_ACCUMULATORS = 10
"""With fewer vectors of accumulators there are registers to spare."""


def convolution(channels, filters, rows, columns, kernel, activation=op.nn.relu, **options):
    """A convolution with a bias and an activation."""
    shapes = [(1, channels, rows, columns), (filters, channels, kernel, kernel), (1, filters, 1, 1)]
    return fused(shapes, lambda x, w, b: activation(op.add(conv(x, w, **options), b)))


FUNCTIONS = {
    "the first of a large image": convolution(32, 32, 149, 149, 3),
    "odd columns": convolution(32, 64, 147, 147, 3, padding=1),
    "56 columns": convolution(64, 64, 56, 56, 3, padding=1),
    "7 columns": convolution(128, 128, 7, 7, 3, padding=1),
    "of a pixel": convolution(256, 64, 14, 14, 1),
    "strided": convolution(32, 64, 31, 31, 3, strides=2),
    "many constants, one tile": convolution(64, 64, 12, 40, 3, op.nn.silu, padding=1),
    "more constants": convolution(64, 128, 6, 20, 3, op.nn.gelu, padding=1),
    "constants, and rows of one vector": convolution(16, 16, 40, 16, 3, op.tanh, padding=1),
}


def assembly_of(kernels, device):
    """What LLVM makes of kernels, for any processor."""
    named = {f"kernel{i}": k.func.with_attr("global_symbol", f"kernel{i}") for i, k in enumerate(kernels)}
    return tvm.compile(tvm.IRModule(named), target=tvm_target(device)).mod.inspect_source("asm")


def innermost_loops(assembly):
    """The instructions of each loop that has no other within it."""
    lines = [line.split("#")[0].strip() for line in assembly.splitlines()]
    labels = {line[:-1]: n for n, line in enumerate(lines) if re.fullmatch(r"\.L\w+:", line)}
    for end, line in enumerate(lines):
        jump = re.fullmatch(r"j\w+\s+(\.L\w+)", line)
        if jump and jump[1] in labels and labels[jump[1]] < end:
            body = lines[labels[jump[1]] : end]
            if not any(re.match(r"j\w+\s", inner) for inner in body):
                yield body


def stack_stores(assembly):
    """Vectors that are stored to the stack in loops of multiply-adds; those of an activation divide, too."""
    tiles = [b for b in innermost_loops(assembly) if sum("vfmadd" in i for i in b) >= MULTIPLY_ADDS]
    tiles = [b for b in tiles if not any("vdiv" in i for i in b)]
    assert tiles
    return [i for body in tiles for i in body if re.match(r"vmov\w+\s+%[yz]mm\d+, -?\d*\(%r[sb]p", i)]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("rule", [FILTERS_RULE, WINDOW_RULE, WINOGRAD_RULE], ids=lambda rule: rule.name)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_accumulator_is_spilt(name, rule, processor):
    device = DEVICES[processor]
    function = Function(name, FUNCTIONS[name], device, frozenset({1}))
    tilings = best_of_each_size(rule.tilings(function))[:2]
    assert tilings or rule is WINOGRAD_RULE
    if tilings:
        assert stack_stores(assembly_of([rule.build(function, dict(t.choices)) for t in tilings], device)) == []


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("rule", [FILTERS_RULE, WINDOW_RULE], ids=lambda rule: rule.name)
def test_no_form_of_a_register_tile_is_spilt(rule, processor):
    """Whatever is predicted to be best: each form that a tiling can have."""
    device = DEVICES[processor]
    function = Function("conv", FUNCTIONS["of a pixel"], device, frozenset({1}))
    forms = {(t["vectors"], t["filters"] if rule is WINDOW_RULE else t["columns"]): t for t in rule.tilings(function)}
    full = [t for (vectors, others), t in forms.items() if vectors * others >= MIN_ACCUMULATORS]
    assert len(full) >= 3
    assert stack_stores(assembly_of([rule.build(function, dict(t.choices)) for t in full], device)) == []
