"""Plans as tables: what 32 bits cannot count is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.wavefront.graphs import make_graph, make_kernels
from tvm_rammer.errors import CodegenError
from tvm_rammer.ir import Buffer, RProgram, Run, Signal, Wait
from tvm_rammer.kernel import RTaskFunction
from tvm_rammer.persistent_codegen.layout import FIRST_EXTERNAL, WORKSPACE, Address, Layout
from tvm_rammer.persistent_codegen.tables import build_tables

KERNELS = make_kernels(a=(2, 1.0), b=(1, 1.0))
LANES = ((Run(0, 0, 1), Wait(0, 1), Run(1, 0, 1)), (Run(0, 1, 1), Signal(0)))
PROGRAM = RProgram("p", make_graph({"a": "", "b": "a"}), (KERNELS["f_a"][0], KERNELS["f_b"][0]), LANES, 1, {1: 0}, 512)
FUNCTIONS = [RTaskFunction(name, None, ("float32", "int8")) for name in ("k_a", "k_b")]
EXTERNAL = Address(FIRST_EXTERNAL, 0)
LAYOUT = Layout(
    ((EXTERNAL, Address(WORKSPACE, 0)), (Address(WORKSPACE, 0), replace(EXTERNAL, segment=3))),
    np.zeros(128, np.uint8), (0,), (2,), 512, 0, 512,
)  # fmt: skip


def refused(message, program=PROGRAM, layout=LAYOUT, functions=FUNCTIONS):
    with pytest.raises(CodegenError, match=message):
        build_tables(program, layout, functions)


def test_a_plan_as_tables():
    tables = build_tables(PROGRAM, LAYOUT, FUNCTIONS)
    assert tables.begin.tolist() == [0, 3, 5]
    assert tables.code[:, 0].tolist() == [2, 0, 3, 2, 1]
    assert tables.code.dtype == tables.arguments.dtype == np.int32


def test_an_offset_of_too_many_elements():
    at = 2**31 - 512
    last = replace(LAYOUT, addresses=((EXTERNAL, Address(WORKSPACE, at)), LAYOUT.addresses[1]))
    assert build_tables(PROGRAM, last, FUNCTIONS).arguments[0, 1] == at
    over = replace(LAYOUT, addresses=((EXTERNAL, Address(WORKSPACE, at + 128)), LAYOUT.addresses[1]))
    refused(r"buffer 'a.out' would need the index 2147483775, and .* counts to 2147483647; divide", layout=over)


def test_an_offset_counts_in_elements_not_in_bytes():
    buffers = (PROGRAM.graph.buffers[0], Buffer("a.out", (128,), "float32", "intermediate"), PROGRAM.graph.buffers[2])
    program = replace(PROGRAM, graph=replace(PROGRAM.graph, buffers=buffers))
    far = replace(LAYOUT, addresses=((EXTERNAL, Address(WORKSPACE, 2**32)), (Address(WORKSPACE, 2**32), EXTERNAL)))
    floats = [replace(f, dtypes=("float32", "float32")) for f in FUNCTIONS]
    assert build_tables(program, far, floats).arguments[0, 1] == 2**30
    refused("'a.out' would need the index 4294967807", program, far)


def test_a_large_input():
    huge = (Buffer("x", (2**31 + 1,), "int8", "input"), *PROGRAM.graph.buffers[1:])
    bytes_ = [replace(f, dtypes=("int8", "int8")) for f in FUNCTIONS]
    refused("buffer 'x'", replace(PROGRAM, graph=replace(PROGRAM.graph, buffers=huge)), LAYOUT, bytes_)


def test_arenas_and_counters_behind_a_large_workspace():
    functions = [replace(f, scratch=((1024, "int8"),)) for f in FUNCTIONS]
    behind = replace(LAYOUT, arena_offset=2**31, arena_bytes=1024, workspace_bytes=2**31 + 3 * 1024)
    refused("the arenas, seen as int8, would need the index 2147486719", layout=behind, functions=functions)
    floats = [replace(f, scratch=((1024, "float32"),)) for f in FUNCTIONS]
    build_tables(PROGRAM, behind, floats)
    refused("1 events would need", layout=replace(LAYOUT, workspace_bytes=2**33))


def test_a_part_of_an_input_or_output_has_a_word_for_its_offset():
    part = replace(EXTERNAL, offset=64)
    shifted = replace(LAYOUT, addresses=((part, Address(WORKSPACE, 0)), LAYOUT.addresses[1]))
    tables = build_tables(PROGRAM, shifted, FUNCTIONS)
    assert [s.offsets for s in tables.signatures] == [(2, None), (None, None)]
    assert tables.arguments.tolist() == [[FIRST_EXTERNAL, 0, 16, 0], [0, 3, 0, 0]]
    assert build_tables(PROGRAM, LAYOUT, FUNCTIONS).arguments.shape == (2, 2)


def test_numbers_of_a_function_follow_its_buffers():
    functions = [replace(FUNCTIONS[0], name="shared", numbers=numbers) for numbers in ((7, -2), (5, 3))]
    tables = build_tables(PROGRAM, LAYOUT, functions)
    assert tables.arguments.tolist() == [[FIRST_EXTERNAL, 0, 7, -2], [0, 3, 5, 3]]
    assert tables.width == 4
    assert [s.function.name for s in tables.signatures] == ["shared", "shared"]  # of other kinds of memory
    part = replace(EXTERNAL, offset=64)
    shifted = replace(LAYOUT, addresses=((part, Address(WORKSPACE, 0)), LAYOUT.addresses[1]))
    tables = build_tables(PROGRAM, shifted, [functions[0], FUNCTIONS[1]])
    assert [s.offsets for s in tables.signatures] == [(4, None), (None, None)]
    assert tables.arguments.tolist() == [[FIRST_EXTERNAL, 0, 7, -2, 16, 0, 0, 0], [0, 3, 0, 0, 0, 0, 0, 0]]
