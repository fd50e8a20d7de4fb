"""Kernels whose code differs in a few numbers have one rTask function, and compute what they did."""

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

from tests.emulation.programs import H200, build
from tests.functions import fused
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run
from tvm_rammer.kernel import RTaskFunction
from tvm_rammer.persistent_codegen.arrays import pointer_variable
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.persistent_codegen.share_code import MOST_NUMBERS, share_code
from tvm_rammer.rkernel_gen.cuda.elementwise import ELEMENTWISE_RULE
from tvm_rammer.rkernel_gen.cuda.product.gemm import GEMM_RULE
from tvm_rammer.rkernel_gen.cuda.product.mma import MMA_RULE
from tvm_rammer.rkernel_gen.tiling import Function

op, nn = relax.op, relax.op.nn
GPU = tvm.target.Target(H200.target_config())
TILE = {"i": 16, "j": 32, "k": 32, "mi": 2, "mj": 4, "slices": 1}
TEAMS = {"i": 8, "j": 32, "k": 64, "mi": 4, "mj": 4, "slices": 16}
MATRIX = {"i": 16, "j": 32, "k": 16, "mi": 16, "mj": 16, "slices": 1}


def conv_1x1(channels, pixels=7, filters=40):
    return lambda x, w: nn.relu(nn.conv2d(x, w)), [(1, channels, pixels, pixels), (filters, channels, 1, 1)]


def kernel_of(name, make, shapes, rule, choices, dtype="float32"):
    func = fused(shapes, make, GPU, names="x{}", dtype=dtype)
    constants = frozenset({1}) if len(shapes) > 1 else frozenset()
    kernel = rule.build(Function(name, func, H200, constants), choices)
    assert kernel is not None
    return kernel


def convs(channels, tile=TILE, rule=GEMM_RULE, dtype="float32"):
    return [kernel_of(f"conv{c}", *conv_1x1(c), rule, tile, dtype) for c in channels]


def shared(kernels):
    return share_code([extract_cuda(kernel, H200) for kernel in kernels], "p")


def run_together(kernels, arrays):
    """What kernels compute in one emulated program of two vEUs; the second of two arrays is a constant."""
    buffers, operators, values = [], [], {}
    for n, (kernel, given) in enumerate(zip(kernels, arrays, strict=True)):
        first = len(buffers)
        for i, array in enumerate(given):
            values |= {len(buffers): array} if i in kernel.packs else {}
            kind = "constant" if i in kernel.packs else "input"
            buffers.append(Buffer(f"x{n}_{i}", array.shape, str(array.dtype), kind))
        result = kernel.func.params[-1]
        buffers.append(Buffer(f"y{n}", tuple(int(s) for s in result.shape), str(result.dtype), "output"))
        inputs = tuple(range(first, len(buffers) - 1))
        operators.append(ROperator(f"o{n}", kernel.spec.function, inputs, (len(buffers) - 1,)))
    lanes = tuple(
        tuple(Run(o, v, (k.spec.num_rtasks - v + 1) // 2, 2) for o, k in enumerate(kernels) if v < k.spec.num_rtasks)
        for v in range(2)
    )
    graph = RGraph("together", tuple(buffers), tuple(operators))
    built = build(RProgram("together", graph, tuple(k.spec for k in kernels), lanes, 0, {}, 0), kernels, values)
    got = built.run({b.name: arrays[int(b.name[1])][int(b.name[3])] for b in buffers if b.kind == "input"})
    return built, [got[f"y{n}"] for n in range(len(kernels))]


def random_conv(channels, dtype="float32"):
    rng = np.random.default_rng(channels)
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in conv_1x1(channels)[1])
    return [x, w], np.maximum(np.einsum("fc,chw->fhw", w[:, :, 0, 0], x[0], dtype="float32"), 0)[None]


@pytest.mark.parametrize(
    ("channels", "tile", "numbers"),
    [
        ((96, 128, 224), TILE, [(2,), (3,), (6,)]),  # whole steps
        ((72, 88, 104, 120), TILE, [(2, 3), (2, 1), (3, 3), (3, 1)]),  # the first step begins at an eighth channel
        ((144, 208, 272), TEAMS, [(2,), (3,), (4,)]),  # the same remainder
    ],
)
def test_convolutions_that_differ_in_channels_have_one_function(channels, tile, numbers):
    kernels = convs(channels, tile)
    functions = shared(kernels)
    assert {f.name for f in functions} == {f"p_{kernels[0].spec.name}"}
    assert [f.numbers for f in functions] == numbers
    arrays, want = zip(*map(random_conv, channels), strict=True)
    built, got = run_together(kernels, arrays)
    assert built.source.count('extern "C" __device__') == 2  # declared, defined
    for one, result in zip(got, want, strict=True):
        np.testing.assert_allclose(one, result, rtol=1e-4, atol=1e-4)


def test_products_on_tensor_cores_share_their_code():
    channels = (48, 80, 112)
    kernels = convs(channels, MATRIX, MMA_RULE, "float16")
    assert len({f.name for f in shared(kernels)}) == 1
    arrays, want = zip(*(random_conv(c, "float16") for c in channels), strict=True)
    _, got = run_together(kernels, arrays)
    for one, result in zip(got, want, strict=True):
        np.testing.assert_allclose(one, result, rtol=1e-2, atol=1e-1)


def exponential(shape, vectors, threads=64):
    choices = {"vectors_per_thread": vectors, "threads": threads, "vector_width": 4}
    return kernel_of(f"exp{shape[0]}", op.exp, [shape], ELEMENTWISE_RULE, choices)


def test_elementwise_functions_of_other_sizes_have_one_function():
    kernels = [exponential((rows, 12), 1) for rows in (128, 192, 200, 216)]
    functions = shared(kernels)
    assert [f.name == functions[0].name for f in functions] == [True, True, False, False]  # whole rTasks, and not
    assert [f.numbers for f in functions] == [(), (), (75,), (81,)]
    assert functions[2].name == functions[3].name
    rng = np.random.default_rng(0)
    arrays = [[rng.standard_normal([int(n) for n in k.func.params[0].shape]).astype("float32")] for k in kernels]
    _, got = run_together(kernels, arrays)
    for result, (given,) in zip(got, arrays, strict=True):
        np.testing.assert_allclose(result, np.exp(given), rtol=1e-5)


def test_what_differs_in_more_than_numbers_is_left_alone():
    kernels = [
        *convs([96]),
        *convs([160], TEAMS),
        kernel_of("other", *conv_1x1(160, pixels=9), GEMM_RULE, TILE),  # factors of addresses
        kernel_of("plain", lambda x, w: nn.conv2d(x, w), conv_1x1(160)[1], GEMM_RULE, TILE),
        exponential((128, 12), 1),
        exponential((128, 24), 2),  # a loop without a barrier
    ]
    functions = [extract_cuda(kernel, H200) for kernel in kernels]
    assert list(share_code(functions, "p")) == functions


def test_the_same_function_twice_is_no_reason_to_share():
    (kernel,) = convs([96])
    function = extract_cuda(kernel, H200)
    assert share_code([function, function], "p") == (function, function)


def written(name, value, size=64):
    """An rTask function by hand: `value(rtask, registers)` is stored by each."""
    pointer, rtask, tid = pointer_variable("y", "float32"), tirx.Var("rtask", "int32"), tirx.Var("tid", "int32")
    array = tirx.decl_buffer((size,), "float32", "y", data=pointer)
    registers = tirx.decl_buffer((8,), "float32", "r", scope="local")
    body = tirx.SeqStmt([
        tirx.DeclBuffer(array, data=pointer),
        tirx.AllocBuffer(registers),
        tirx.BufferStore(array, value(rtask, registers), [tid]),
    ])  # fmt: skip
    return RTaskFunction(name, tirx.PrimFunc([pointer, rtask, tid], body), ("float32",), (), 32)


def sums(*numbers):
    """A function of several numbers that have nothing to do with each other."""

    def value(rtask, _):
        total = rtask
        for n, number in enumerate(numbers):
            total = (total + number) * (n + 2)
        return total.astype("float32")

    return value


def test_numbers_that_determine_each_other_are_one_argument():
    functions = [written(f"f{n}", sums(10 + n, 7, 40 - 3 * n, 2 * n), size=8 * n) for n in (1, 2, 5)]
    found = share_code(functions, "p")
    assert [f.numbers for f in found] == [(11,), (12,), (15,)]
    assert len({f.name for f in found}) == 1
    assert int(found[0].func.body.seq[0].buffer.shape[0]) == 40  # the largest array


def test_programs_of_one_module_name_their_functions_apart():
    functions = [written(f"f{n}", sums(n)) for n in (1, 2)]
    assert [share_code(functions, program)[1].name for program in ("p", "q")] == ["p_f1", "q_f1"]


def test_functions_of_too_many_numbers_keep_their_own():
    for count in (MOST_NUMBERS, MOST_NUMBERS + 1):
        functions = [written(f"f{n}", sums(*(n ** (power + 1) for power in range(count)))) for n in (1, 2, 3, 5, 7)]
        assert len({f.name for f in share_code(functions, "p")}) == (1 if count == MOST_NUMBERS else 5)


def test_an_index_of_registers_is_no_argument():
    functions = [written(f"f{n}", lambda rtask, r, n=n: r[rtask % 4 + n]) for n in (1, 2)]
    assert list(share_code(functions, "p")) == functions


def test_numbers_of_64_bits_are_no_arguments():
    functions = [
        written(f"f{n}", lambda rtask, _, n=n: (rtask.astype("int64") + tirx.IntImm("int64", n)).astype("float32"))
        for n in (1, 2)
    ]
    assert list(share_code(functions, "p")) == functions


def test_functions_of_other_threads_or_scratch_keep_their_own():
    one = written("f1", sums(1))
    others = [replace(written("f2", sums(2)), threads=64), replace(written("f3", sums(2)), scratch=((64, "int8"),))]
    assert list(share_code([one, *others], "p")) == [one, *others]
