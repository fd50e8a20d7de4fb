"""The function of one rTask: what it takes, what it computes, what is refused."""

import itertools
import operator
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tirx
from tvm.relax import op

from tests.functions import chosen, fused, relax_module, run
from tvm_rammer.device import host_cpu
from tvm_rammer.errors import CodegenError
from tvm_rammer.ir import RKernel
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.persistent_codegen.cpu import rtask
from tvm_rammer.persistent_codegen.cpu.pipeline import PIPELINE
from tvm_rammer.persistent_codegen.cpu.rtask import extract_cpu


def conv_kernels():
    func = fused([(1, 8, 14, 14), (32, 8, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1))
    return chosen("conv", func, host_cpu(), frozenset([1]))


def statements(func, kind):
    found = []
    tvm_ffi.structural_walk(func.body, [(kind, found.append)], order="pre")
    return found


@pytest.mark.parametrize("position", [0, 1])
def test_an_rtask_function_has_no_parallel_loop_and_allocates_nothing(position):
    kernel = conv_kernels()[position]
    made = extract_cpu(kernel)
    assert not any(loop.kind == tirx.ForKind.PARALLEL for loop in statements(made.func, tirx.For))
    assert not statements(made.func, tirx.AllocBuffer)
    assert made.dtypes == ("float32",) * 3
    assert len(made.func.params) == 3 + len(made.scratch) + 1
    assert made.func.attrs["calling_conv"] == 2  # else TVM gives it a packed interface


def test_scratch_arrays_do_not_overlap():
    made = extract_cpu(conv_kernels()[0])
    arrays = made.scratch_offsets()
    assert len(arrays) == len(made.scratch) >= 2  # the padded image and the accumulators
    for (size, at), (nbytes, _) in zip(arrays, made.scratch, strict=True):
        assert size >= nbytes
        assert at % 128 == 0
    assert all(a + size <= b for (size, a), (_, b) in itertools.pairwise(arrays))
    assert made.scratch_bytes == arrays[-1][0] + arrays[-1][1]


def test_a_kernel_that_has_another_number_of_rtasks_is_refused():
    kernel = conv_kernels()[1]
    wrong = replace(kernel, spec=replace(kernel.spec, num_rtasks=kernel.spec.num_rtasks + 1))
    with pytest.raises(CodegenError, match=f"has {kernel.spec.num_rtasks} rTasks, but says"):
        extract_cpu(wrong)


def test_work_outside_the_rtasks_is_refused():
    unscheduled = fused([(8, 8)], op.tanh)
    with pytest.raises(CodegenError, match="work outside its rTasks: For"):
        extract_cpu(ScheduledKernel(RKernel("tanh", "tanh", 4, 1.0), unscheduled))


@pytest.mark.parametrize("pieces", [3, 60])
def test_a_concatenation_of_many_pieces_is_copied_piece_by_piece(pieces):
    """With a choice in the innermost loop, TVM's passes would take 2 ** 60 steps for it."""
    func = fused([(1, 32)] * pieces, lambda *values: op.concat(list(values), axis=0))
    for kernel in chosen("concat", func, host_cpu()):
        made = extract_cpu(kernel)
        tvm.s_tir.transform.HoistIfThenElse()(tvm.IRModule({"main": made.func}))
        inside = [loop for loop in statements(made.func, tirx.For) if isinstance(loop.body, tirx.BufferStore)]
        assert len(inside) >= pieces // kernel.spec.num_rtasks


@pytest.mark.parametrize("otherwise", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize("comparison", [operator.lt, operator.le, operator.gt, operator.ge])
def test_a_loop_is_split_where_its_condition_changes(comparison, swapped, otherwise):
    extent, places = 10, np.arange(10)
    for bound in (-1, 0, 1, 4, extent - 1, extent):
        buffer, k = tirx.decl_buffer((extent,), "int32", "out"), tirx.Var("k", "int32")
        kinds = {operator.lt: tirx.LT, operator.le: tirx.LE, operator.gt: tirx.GT, operator.ge: tirx.GE}
        sides = (tirx.IntImm("int32", bound), k) if swapped else (k, tirx.IntImm("int32", bound))
        stores = [tirx.BufferStore(buffer, (k + 1) * sign, [k]) for sign in (1, -1)]
        branch = tirx.IfThenElse(kinds[comparison](*sides), stores[0], stores[1] if otherwise else None)
        made = rtask._unswitch_loops(tirx.For(k, 0, extent, tirx.ForKind.SERIAL, branch))
        func = tirx.PrimFunc([buffer], made).with_attr("s_tir", True)
        holds = comparison(bound, places) if swapped else comparison(places, bound)
        assert bool(statements(func, tirx.IfThenElse)) == (len(set(holds)) == 1)
        got = run(func, [np.zeros(extent, "int32")])
        np.testing.assert_array_equal(got, np.where(holds, places + 1, -(places + 1) if otherwise else 0))


def test_no_concatenation_asks_for_its_part_in_the_innermost_loop():
    shapes = [(1, 20, 64), (1, 20, 32), (1, 20, 48)]
    kernels = chosen("concat", fused(shapes, lambda *parts: op.concat(list(parts), axis=2)), host_cpu())
    assert kernels
    for kernel in kernels:
        assert not statements(extract_cpu(kernel).func, tirx.IfThenElse)


BFLOAT16 = {
    "the largest of rows": (lambda x: op.max(x, 1), lambda x: x.max(1)),
    "the least of columns": (lambda x: op.min(x, 0), lambda x: x.min(0)),
    "edges": (
        lambda x: op.nn.pad(x, [0, 0, 16, 16], "constant", 1.5),
        lambda x: np.pad(x, [(0, 0), (16, 16)], constant_values=1.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("lowering", ["s_tir", PIPELINE])
@pytest.mark.parametrize("operator", BFLOAT16)
def test_vectors_of_a_number_of_bfloat16(operator, lowering):
    """By TVM's own lowering, as `relax_pipeline="rammer"` has it, and by that of `compile`."""
    ours, want = BFLOAT16[operator]
    module = relax_module([(4, 32)], ours, dtype="bfloat16")
    target = tvm.target.Target(host_cpu().target_config())
    executable = tvm.compile(module, target, relax_pipeline="rammer", tir_pipeline=lowering)
    x = np.random.default_rng(0).integers(-64, 64, (4, 32)).astype(ml_dtypes.bfloat16)
    got = tvm.relax.VirtualMachine(executable, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_array_equal(got, want(x))
