"""Slices of weights that stay in shared memory over all steps, on an emulated GPU: right, and wrong ones go wrong."""

import functools
import importlib
from dataclasses import replace

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError
from tests.emulation.programs import H200, Built, build, plan
from tests.marks import needs_nvcc, slow_but
from tests.persistent_codegen.cuda.read_rows import BEGIN, ROWS
from tests.relay_passes.models import random
from tvm_rammer.errors import CodegenError, ResidencyError
from tvm_rammer.ir import RProgram, Run
from tvm_rammer.nvcc import measure_resources
from tvm_rammer.persistent_codegen.cuda.resources import check_residency
from tvm_rammer.relay_passes import load_model
from tvm_rammer.wavefront.keep_slices import keep_slices
from tvm_rammer.zoo.onnx_lstm import GATES, onnx_lstm

STEPS, HIDDEN, VEUS = 8, 64, 3
RECURRENT_BYTES = 4 * HIDDEN * HIDDEN * 4
SLICE_BYTES = RECURRENT_BYTES // 64
SLICES = {"all": 64, "some": 6, "none": 0}
"""For how many slices a vEU has room."""


@functools.cache
def planned(room: str) -> Built:
    """A layer whose product has 64 rTasks, on vEUs that have room for so many of their slices."""
    if room == "all":
        with pytest.MonkeyPatch.context() as patch:
            scheduling = importlib.import_module("tvm_rammer.wavefront.schedule_loop")
            patch.setattr(scheduling, "choose_veus", lambda plan, most, cost, *_: plan(most))
            module = load_model(onnx_lstm(1, STEPS, HIDDEN), loops=True)
            programs = plan(module, VEUS, choose=lambda made: [max(made, key=lambda k: k.spec.num_rtasks)])
        (built,) = [b for b in programs if b.program.steps > 1]
        return built
    built = planned("all")
    lanes = [[replace(i, kept=None) if isinstance(i, Run) else i for i in lane] for lane in built.program.lanes]
    shared = max(k.shared_bytes for k in built.program.kernels) + SLICES[room] * SLICE_BYTES
    device = replace(H200, shared_per_block=shared, unit_bytes=shared + 1024)
    return rebuilt(built, keep_slices(replace(built.program, lanes=tuple(map(tuple, lanes))), device))


def rebuilt(built: Built, program: RProgram) -> Built:
    return build(program, built.kernels, built.values)


def inputs_of(built: Built, seed: int = 0) -> dict[str, np.ndarray]:
    return {b.name: random(*b.shape, seed=seed) for b in built.program.graph.buffers if b.kind == "input"}


def kept_runs(program: RProgram, lane: int) -> list[tuple[int, Run]]:
    return [(n, i) for n, i in enumerate(program.lanes[lane]) if isinstance(i, Run) and i.kept is not None]


def test_slices_stay_where_there_is_room():
    for room, slices in SLICES.items():
        built = planned(room)
        counts = [sum(run.count for _, run in kept_runs(built.program, lane)) for lane in range(VEUS)]
        assert (sum(counts) == 64) if room == "all" else (counts == [slices] * VEUS)
        arena = max(k.shared_bytes for k in built.program.kernels)
        assert built.cuda.shared_bytes == arena + max(counts) * SLICE_BYTES
        assert ("rammer_keep((&" in built.source) == (room != "none")


@pytest.mark.parametrize("room", ["all", "some"])
def test_what_is_read_from_shared_memory_is_what_is_read_from_the_cache(room):
    built, plain = planned(room), planned("none")
    for run in range(3):  # counters go on from run to run; what is kept is loaded anew
        inputs = inputs_of(built, run)
        got, want = built.run(inputs, seed=run), plain.run(inputs, seed=run)
        assert all(np.array_equal(got[name], array) for name, array in want.items())


@functools.cache
def wanted() -> dict[str, np.ndarray]:
    plain = planned("none")
    return replace(plain, state=plain.cuda.constants[-1].copy()).run(inputs_of(plain))


def goes_wrong(built: Built, source: str | None = None, **tables: np.ndarray) -> bool:
    """Whether some seed gives an error, or another result than vEUs that keep nothing."""
    constants = list(built.cuda.constants)
    for name, table in tables.items():
        constants[{"begin": BEGIN, "rows": ROWS}[name]] = table
    cuda = replace(built.cuda, constants=tuple(constants))
    for seed in range(12):
        try:
            got = replace(built, cuda=cuda, state=constants[-1].copy()).run(inputs_of(built), seed, source)
        except EmulationError:
            return True
        if any(not np.array_equal(got[name], value) for name, value in wanted().items()):
            return True
    return False


def test_each_word_of_a_copy_is_needed():
    built = planned("some")
    begin, copies = built.cuda.constants[BEGIN], 2 * (VEUS + 1)
    assert len(begin) == copies + 3 * VEUS and not goes_wrong(built, begin=begin)
    for at in range(copies, len(begin)):
        longer = at % 3 == (copies + 2) % 3  # what is copied beyond the last slice lies where nobody reads it
        for by in (-1,) if longer else (-1, 1):
            wrong = begin.copy()
            wrong[at] += by
            assert goes_wrong(built, begin=wrong), (at, by)
    for at in range(VEUS + 2, copies):  # a lane without its copy, and the next one with two
        wrong = begin.copy()
        wrong[at] -= 3
        assert goes_wrong(built, begin=wrong), at


def test_rows_that_look_at_another_place_than_the_copies_went_are_wrong():
    built = planned("all")
    for lane in range(VEUS):
        (at, run), lanes = kept_runs(built.program, lane)[0], list(built.program.lanes)
        lanes[lane] = (*lanes[lane][:at], replace(run, kept=run.kept + SLICE_BYTES), *lanes[lane][at + 1 :])
        moved = rebuilt(built, replace(built.program, lanes=tuple(lanes)))
        roomy = replace(built, cuda=replace(built.cuda, shared_bytes=moved.cuda.shared_bytes))
        assert goes_wrong(roomy, rows=moved.cuda.constants[ROWS])


def test_the_copy_is_needed():
    built = planned("all")
    (call,) = [line for line in built.source.splitlines() if "rammer_keep((&" in line]
    assert goes_wrong(built, built.source.replace(call, ""))


def test_the_barrier_of_the_first_row_is_needed():
    built = planned("all")
    # The threads of these rTasks read what they have copied themselves; others would not.
    source = built.source.replace("int i = threadIdx.x;", "int i = blockDim.x - 1 - threadIdx.x;")
    before, copies, rest = source.partition("int first_copy")
    late = f"{before}int rows_done = 0; if (threadIdx.x >= 32) __nanosleep(1); {copies}"
    changed = rest.replace("rammer_block_barrier();", "if (rows_done++) rammer_block_barrier();")
    assert source != built.source and changed != rest
    assert not goes_wrong(built, late + rest)
    assert goes_wrong(built, late + changed)


def test_slices_that_are_not_the_whole_constant_are_refused():
    built = planned("all")
    kernels = tuple(
        replace(k, slices=replace(k.slices, nbytes=k.slices.nbytes // 2)) if k.slices else k
        for k in built.program.kernels
    )
    with pytest.raises(CodegenError, match=r"64 of 512 bytes, but it has 65536 where it is packed"):
        rebuilt(built, replace(built.program, kernels=kernels))


@needs_nvcc
def test_what_is_kept_counts_for_residency_and_nothing_spills():
    built = planned("all")
    needs, cuda = measure_resources(built.source, H200.arch), built.cuda
    assert needs.spill_bytes == 0
    assert check_residency(H200, cuda.threads, needs, VEUS, cuda.shared_bytes) == 228 * 1024 // (22 * 1024 + 384 + 1024)
    with pytest.raises(ResidencyError):
        check_residency(
            replace(H200, units=VEUS - 1, unit_bytes=2 * cuda.shared_bytes),
            cuda.threads,
            needs,
            VEUS,
            cuda.shared_bytes,
        )


@pytest.mark.parametrize("layer", slow_but(["LSTM 128"], ["LSTM 128", "GRU 256", "LSTM 256"]))
def test_every_recurrent_weight_of_a_layer_is_on_chip(layer):
    kind, hidden = layer.split()[0], int(layer.split()[1])
    programs = plan(load_model(onnx_lstm(1, STEPS, hidden, kind=kind), loops=True), 132)
    (program,) = [b.program for b in programs if b.program.steps > 1]
    runs = [run for lane in range(len(program.lanes)) for _, run in kept_runs(program, lane)]
    kept = sum(program.kernels[run.operator].slices.nbytes * run.count for run in runs)
    assert kept == GATES[kind] * hidden * hidden * 4 and program.kept_bytes <= 16 * 1024
