"""The reference interpreter: every legal order gives one result, and an illegal plan is found out."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.wavefront.graphs import DEVICE, SYNC_COSTS
from tests.wavefront.judge import is_right
from tests.wavefront.tiled_graphs import rtask, tiled_graph
from tvm_rammer.errors import CodegenError, VerificationError
from tvm_rammer.ir import Buffer, RGraph, RKernel, ROperator, RProgram, Run, Signal, Wait
from tvm_rammer.persistent_codegen.reference import interpret
from tvm_rammer.persistent_codegen.reference_rtasks import compile_rtasks, one_rtask
from tvm_rammer.wavefront import schedule, verify
from tvm_rammer.zoo.inception_module import inception_module

from .regions import planned_region


def planned(seed, operators=12, **how):
    """One random program of a tiled graph, and its rTasks."""
    rng = random.Random(seed)
    graph, kernels = tiled_graph(rng, operators)
    # No launch is cheaper than a signal, so it is one program.
    options = {"veus": rng.randint(2, 6), "cost": replace(SYNC_COSTS, launch_us=1e6)} | how
    (program,) = schedule(graph, kernels, DEVICE, **options)
    return program, rtasks_of(program)


def rtasks_of(program):
    return [rtask(program.graph, op, k) for op, k in zip(program.graph.operators, program.kernels, strict=True)]


def inputs_of(program, seed=0):
    rng = np.random.default_rng(seed)
    return {
        b.name: rng.integers(-128, 128, b.shape).astype(b.dtype) for b in program.graph.buffers if b.kind == "input"
    }


def in_order(program, values):
    """Operator after operator, without a plan and without a workspace."""
    arrays = [values[b.name] if b.name in values else np.zeros(b.shape, b.dtype) for b in program.graph.buffers]
    for op, kernel, run in zip(program.graph.operators, program.kernels, rtasks_of(program), strict=True):
        for index in range(kernel.num_rtasks):
            run(*(arrays[b] for b in (*op.inputs, *op.outputs)), index)
    return {b.name: a for b, a in zip(program.graph.buffers, arrays, strict=True) if b.kind == "output"}


def same(got, want):
    return got.keys() == want.keys() and all(np.array_equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize("sync", ["auto", "global"])
@pytest.mark.parametrize("policy", ["wavefront", "sequential"])
@pytest.mark.parametrize("graph", range(6))
def test_every_order_gives_the_same(graph, policy, sync):
    program, rtasks = planned(graph, policy=policy, sync=sync)
    values = inputs_of(program)
    want = in_order(program, values)
    for seed in range(20):
        assert same(interpret(program, rtasks, values, seed=seed), want)


def without(program, lane, n):
    shorter = program.lanes[lane][:n] + program.lanes[lane][n + 1 :]
    return replace(program, lanes=(*program.lanes[:lane], shorter, *program.lanes[lane + 1 :]))


def test_a_program_without_a_needed_wait_is_found_out():
    """What is illegal by the judge gives a wrong result in some order; what is legal never does."""
    illegal = wrong = 0
    for graph in range(6):
        program, rtasks = planned(graph, operators=8)
        values = inputs_of(program)
        want = in_order(program, values)
        assert is_right(program)
        for lane, instructions in enumerate(program.lanes):
            for n in (n for n, instruction in enumerate(instructions) if isinstance(instruction, Wait)):
                broken = without(program, lane, n)
                right = all(same(interpret(broken, rtasks, values, seed=s), want) for s in range(40))
                if is_right(broken):
                    assert right
                else:
                    with pytest.raises(VerificationError):
                        verify(broken)
                    illegal += 1
                    wrong += not right
    assert illegal > 20
    assert wrong > 0.9 * illegal


def chain(lanes, offsets, num_events=1):
    """Three operators, one rTask each, that add one to four bytes."""
    buffers = (
        Buffer("x", (4,), "uint8", "input"),
        *(Buffer(name, (4,), "uint8", "intermediate") for name in "ab"),
        Buffer("y", (4,), "uint8", "output"),
    )
    operators = tuple(ROperator(f"op{n}", "add", (n,), (n + 1,)) for n in range(3))
    program = RProgram("p", RGraph("g", buffers, operators), (RKernel("add", "add", 1, 1.0),) * 3, lanes, num_events,
                       offsets, 256)  # fmt: skip

    def add(source, out, _index):
        out[...] = source + 1

    return program, [add] * 3


X = {"x": np.arange(4, dtype=np.uint8)}


def test_memory_is_shared_as_planned():
    lane = (Run(0, 0, 1), Run(1, 0, 1), Run(2, 0, 1))
    program, rtasks = chain((lane,), {1: 0, 2: 128})
    assert np.array_equal(interpret(program, rtasks, X)["y"], X["x"] + 3)
    # b in the memory of a: an rTask that writes where it reads does its work twice on its own result.
    program, rtasks = chain((lane,), {1: 0, 2: 0})
    assert not np.array_equal(interpret(program, rtasks, X)["y"], X["x"] + 3)


def test_who_overwrites_what_another_is_reading_is_found_out():
    """op2 reads b while op3, of the other lane, writes over it."""
    buffers = (
        Buffer("x", (4,), "uint8", "input"), Buffer("b", (4,), "uint8", "intermediate"),
        Buffer("y", (4,), "uint8", "output"), Buffer("c", (4,), "uint8", "intermediate"),
        Buffer("z", (4,), "uint8", "output"),
    )  # fmt: skip
    reads = ((0, 1), (1, 2), (0, 3), (3, 4))
    graph = RGraph("g", buffers, tuple(ROperator(f"op{n}", "add", (a,), (b,)) for n, (a, b) in enumerate(reads)))
    lanes = ((Run(0, 0, 1), Signal(0), Run(1, 0, 1)), (Wait(0, 1), Run(2, 0, 1), Run(3, 0, 1)))
    program = RProgram("p", graph, (RKernel("add", "add", 1, 1.0),) * 4, lanes, 1, {1: 0, 3: 0}, 256)

    def add(source, out, _index):
        out[...] = source + 1 + (out.size and 0)

    def shifted(source, out, _index):
        out[...] = source + 7

    results = [interpret(program, [add, add, shifted, add], X, seed=seed)["y"].tolist() for seed in range(30)]
    assert (X["x"] + 2).tolist() in results
    assert any(y != (X["x"] + 2).tolist() for y in results)
    with pytest.raises(VerificationError, match="share memory"):
        verify(program)


def test_what_nobody_wrote_is_poison():
    program, rtasks = chain(((Run(1, 0, 1), Run(2, 0, 1)),), {1: 0, 2: 128})
    assert np.array_equal(interpret(program, rtasks, X)["y"], np.full(4, 255 + 2, np.uint16).astype(np.uint8))


def test_a_deadlock_is_an_error():
    lanes = ((Wait(0, 1), Run(0, 0, 1), Run(1, 0, 1), Run(2, 0, 1)), (Wait(0, 2),))
    program, rtasks = chain(lanes, {1: 0, 2: 128})
    with pytest.raises(VerificationError, match=r"lanes \[0, 1\] wait for ever"):
        interpret(program, rtasks, X)


def test_kernels_that_have_no_loop_over_their_rtasks_are_refused():
    kernels = planned_region(inception_module(0, channels=16, size=14, widths=(8,) * 6), 2).kernels
    kernel = next(k for k in kernels if k.spec.num_rtasks > 1)
    with pytest.raises(CodegenError, match="no parallel loop over its 99"):
        one_rtask(replace(kernel, spec=replace(kernel.spec, num_rtasks=99)))
    with pytest.raises(CodegenError, match="on a CPU"):
        compile_rtasks(kernels, DEVICE)
