"""Small programs that the tests of the CUDA backend share."""

import functools
from dataclasses import replace

import numpy as np
from tvm import relax

from tests.emulation.programs import H200, build, plan
from tests.functions import chosen, relax_module
from tvm_rammer.gpu_bundle.lower import WATCHDOG_S
from tvm_rammer.ir import Buffer, RGraph, ROperator, RProgram, Run, Signal, Wait
from tvm_rammer.persistent_codegen import cuda_source
from tvm_rammer.persistent_codegen.cuda.program import assemble_cuda
from tvm_rammer.persistent_codegen.cuda.rtask import extract_cuda
from tvm_rammer.relay_passes import prepare


def two_matmuls(a, b, c):
    # The second product reads rows of the first, which is cut by columns: each tile needs tiles from several vEUs.
    return relax.op.matmul(relax.op.nn.relu(relax.op.matmul(a, b)), c)


def diamond(x, w1, w2, w3):
    left = relax.op.nn.relu(relax.op.nn.conv2d(x, w1))
    right = relax.op.nn.conv2d(x, w2, padding=(1, 1))
    pooled = relax.op.nn.max_pool2d(relax.op.concat([left, right], axis=1), (3, 3), strides=(2, 2))
    return relax.op.nn.avg_pool2d(relax.op.nn.conv2d(pooled, w3), (6, 6))


def softmax(x, w):
    return relax.op.nn.softmax(relax.op.matmul(x, w), axis=-1)


def lstm_cell(x, h, c, wx, wh):
    gates = relax.op.split(relax.op.add(relax.op.matmul(x, wx), relax.op.matmul(h, wh)), 4, axis=1)
    i, f, o = (relax.op.sigmoid(gates[n]) for n in range(3))
    cell = relax.op.add(relax.op.multiply(f, c), relax.op.multiply(i, relax.op.tanh(gates[3])))
    return relax.op.concat([relax.op.multiply(o, relax.op.tanh(cell)), cell], axis=1)


def steps(x, y, z, w):
    # The same function on three inputs: one branch of the kernel, which chooses the pointer.
    return relax.op.concat([relax.op.tanh(relax.op.matmul(step, w)) for step in (x, y, z)], axis=1)


def alike(x, y):
    # Both exponentials have the same code but for a number: how many elements there are.
    return relax.op.matmul(relax.op.exp(x), relax.op.exp(y))


GRAPHS = {
    "two_matmuls": (two_matmuls, [(40, 48), (48, 72), (72, 24)]),
    "diamond": (diamond, [(1, 8, 14, 14), (16, 8, 1, 1), (12, 8, 3, 3), (10, 28, 1, 1)]),
    "softmax": (softmax, [(12, 32), (32, 200)]),
    "steps": (steps, [(4, 32), (4, 32), (4, 32), (32, 40)]),
    "alike": (alike, [(40, 60), (60, 24)]),
    "lstm_cell": (lstm_cell, [(1, 64), (1, 64), (1, 64), (64, 256), (64, 256)]),
}

BY_COLUMNS = 4
"""The `choice` that cuts the first of two_matmuls into narrow columns: no vEU makes all that one of its tiles reads."""

SHARED = 2
"""The `choice` with which both exponentials of alike have the same tile, and so one function."""


@functools.cache
def module(name):
    make, shapes = GRAPHS[name]
    return relax_module(shapes, make)


@functools.cache
def planned(name, veus, choice=None):
    """The programs of a graph; `choice` picks each function's kernel with so many rTasks' rank."""
    choose = tuple if choice is None else lambda kernels: kernels[min(choice, len(kernels) - 1) :][:1]
    return plan(module(name), veus, choose=choose)


def inputs_of(name, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype("float32") * np.float32(0.3) for shape in GRAPHS[name][1]]


def tiny():
    """Two dependent element-wise operators on two vEUs, by hand: each waits for the other's half."""
    return chain("tiny", 2)


def relay():
    """Three of them: two rows that wait follow one another."""
    return chain("relay", 3)


@functools.cache
def chain(name, length):
    import tvm

    builder = relax_module([(512,)], lambda x: relax.op.exp(x))
    mod = prepare(tvm.target.Target(H200.target_config()))(builder)
    (func,) = [f for f in mod.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    kernel = next(k for k in chosen("double_exp", func, H200) if (k.spec.num_rtasks, k.spec.threads) == (2, 64))
    names = ["x", *(f"h{n}" if length > 2 else "h" for n in range(1, length)), "y"]
    kinds = ["input", *["intermediate"] * (length - 1), "output"]
    graph = RGraph(
        name,
        tuple(Buffer(n, (512,), "float32", kind) for n, kind in zip(names, kinds, strict=True)),
        tuple(ROperator(f"exp{n}", "double_exp", (n,), (n + 1,)) for n in range(length)),
    )
    lanes = []
    for v in range(2):
        steps = [(Signal(n), Wait(n, 2), Run(n + 1, (v + n + 1) % 2, 1)) for n in range(length - 1)]
        lanes.append((Run(0, v, 1), *(i for step in steps for i in step)))
    offsets = {n: 2048 * (n - 1) for n in range(1, length)}
    program = RProgram(name, graph, (kernel.spec,) * length, tuple(lanes), length - 1, offsets, 2048 * (length - 1))
    return build(program, [kernel] * length, {})


def watched(built):
    """The same program with a watchdog, in its first state."""
    packs, functions = [k.packs for k in built.kernels], [extract_cuda(k, H200) for k in built.kernels]
    cuda = assemble_cuda(built.program, built.values, packs, functions, H200, watchdog_s=WATCHDOG_S)
    return replace(built, cuda=cuda, source=cuda_source(cuda, H200), state=cuda.constants[-1].copy())
