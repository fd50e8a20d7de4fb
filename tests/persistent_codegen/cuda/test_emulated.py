"""The generated CUDA text, run on the CPU, against stock TVM."""

from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

from tests.emulation.emulate import EmulationError
from tests.emulation.programs import H200, plan, reference, run_all
from tests.functions import relax_module
from tests.marks import slow_but
from tests.persistent_codegen.cuda.programs import BY_COLUMNS, GRAPHS, inputs_of, module, planned, tiny
from tests.persistent_codegen.cuda.read_rows import BEGIN, ROWS, form_of
from tvm_rammer.ir import Signal, Wait


def check(built, name, seed, inputs_seed=0):
    arrays = inputs_of(name, inputs_seed)
    expected = reference(module(name), arrays)
    known = run_all(built, {f"x{i}": a for i, a in enumerate(arrays)}, seed)
    final = [known[b.name] for b in built[-1].program.graph.buffers if b.kind == "output"]
    assert len(final) == len(expected)
    for got, want in zip(final, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("veus", slow_but([3], [1, 3, 8]))
@pytest.mark.parametrize("name", GRAPHS)
def test_programs_compute_what_stock_tvm_does(name, veus):
    built = planned(name, veus)
    for seed in range(3):
        check(built, name, seed, inputs_seed=seed)  # one state all along: also the second and third run are right


@pytest.mark.parametrize("choice", slow_but([1], range(4)))
@pytest.mark.parametrize("name", GRAPHS)
def test_every_tiling_computes_the_same(name, choice):
    check(planned(name, 3, choice), name, seed=choice)


def test_a_program_of_bfloat16_rounds_what_operators_hand_on():
    shapes = [(40, 48), (48, 72), (72,), (72, 24)]
    op, nn = relax.op, relax.op.nn
    built = plan(
        relax_module(shapes, lambda a, b, c, d: op.matmul(nn.relu(op.add(op.matmul(a, b), c)), d), dtype="bfloat16"),
        3,
    )
    assert all("_mma_" in kernel.name for one in built for kernel in one.program.kernels)
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal(shape) * 0.3).astype("bfloat16") for shape in shapes]
    known = run_all(built, {f"x{i}": array for i, array in enumerate(arrays)})
    (got,) = [known[b.name] for b in built[-1].program.graph.buffers if b.kind == "output"]
    a, b, c, d = (array.astype("float64") for array in arrays)
    np.testing.assert_allclose(got.astype("float64"), np.maximum(a @ b + c, 0) @ d, rtol=2**-6, atol=2**-6)


def test_a_program_of_tf32_has_ten_bits_of_the_operands_and_sums_of_single_precision():
    shapes = [(128, 64), (64, 128), (128,), (128, 96)]
    op, nn = relax.op, relax.op.nn
    built = plan(
        relax_module(shapes, lambda a, b, c, d: op.matmul(nn.relu(op.add(op.matmul(a, b), c)), d)),
        3,
        replace(H200, tf32=True),
    )
    assert all("_tf32_" in kernel.name for one in built for kernel in one.program.kernels)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    known = run_all(built, {f"x{i}": array for i, array in enumerate(arrays)})
    (got,) = [known[b.name] for b in built[-1].program.graph.buffers if b.kind == "output"]
    a, b, c, d = (array.astype("float64") for array in arrays)
    want = np.maximum(a @ b + c, 0) @ d
    assert 1e-5 * abs(want).max() < abs(got - want).max() < 2e-3 * abs(want).max()


def test_programs_of_many_functions_compute_the_same(monkeypatch):
    monkeypatch.setattr("tvm_rammer.persistent_codegen.cuda.kernel.build.MANY_FUNCTIONS", 0)
    built = plan(module("diamond"), 3, H200)
    assert "int thread = rammer_thread(" in built[0].source
    check(built, "diamond", seed=0)


def test_counters_grow_and_the_run_number_with_them():
    built = tiny()
    x = np.linspace(-1, 0.5, 512, dtype="float32")
    start = built.state.copy()
    for run in range(1, 4):
        got = built.run({"x": x}, seed=run)["y"]
        np.testing.assert_allclose(got, np.exp(np.exp(x)), rtol=1e-5)
        since = built.state - start
        assert (since[32], since[64]) == (2 * run, 2 * run)  # blocks that have finished, arrivals


def test_wrapped_counters_still_order():
    built = tiny()
    state = built.state.copy()
    runs = 2**32 - 1
    state[32:34] = np.array([2 * runs], np.int64).view(np.int32)
    state[64] = np.uint32(2 * runs % 2**32).astype(np.int32)
    x = np.linspace(-1, 0.5, 512, dtype="float32")
    for seed in range(3):
        got = replace(built, state=state).run({"x": x}, seed)["y"]
        np.testing.assert_allclose(got, np.exp(np.exp(x)), rtol=1e-5)


def goes_wrong(built, source, rows, inputs, want):
    """Whether some seed gives an error or another result than `want`."""
    constants = list(built.cuda.constants)
    constants[ROWS] = constants[ROWS] if rows is None else rows
    for seed in range(24):
        broken = replace(built, cuda=replace(built.cuda, constants=tuple(constants)), state=constants[-1].copy())
        try:
            got = broken.run(inputs, seed, source)
        except EmulationError:
            return True
        if any(not np.allclose(got[name], value, rtol=1e-3) for name, value in want.items()):
            return True
    return False


def crossing():
    built = tiny()
    x = np.linspace(-1, 0.5, 512, dtype="float32")
    return built, {"x": x}, {"y": np.exp(np.exp(x))}


def without(built, kind, at):
    """The rows of a program without one of its waits or signals."""
    form, rows = form_of(built), built.cuda.constants[ROWS].copy()
    places = rows.reshape(-1, form.words)
    if kind is Signal:
        places[at] = -1
        return rows
    row, word = at
    places[row, word] = -1
    if row and places[row - 1, form.waits + word] >= 0:
        places[row - 1, form.waits + word] = -1
    return rows


def places_of(built, kind):
    """(row, word) of each wait or signal of a program."""
    form = form_of(built)
    rows = built.cuda.constants[ROWS].reshape(-1, form.words)[: built.cuda.constants[BEGIN][-1]]
    words = range(form.waits) if kind is Wait else range(form.first_signal, form.what)
    found = [(n, word) for n in range(len(rows)) for word in words if rows[n, word] >= 0]
    assert len(found) == sum(isinstance(i, kind) for lane in built.program.lanes for i in lane)
    return found


@pytest.mark.parametrize("kind", [Wait, Signal])
def test_each_wait_and_each_signal_of_a_program_is_needed(kind):
    built, inputs, want = crossing()
    assert not goes_wrong(built, None, None, inputs, want)
    places = places_of(built, kind)
    assert places
    assert all(goes_wrong(built, None, without(built, kind, at), inputs, want) for at in places)


@pytest.mark.parametrize("veus", [3, 8])
def test_each_wait_of_a_planned_program_is_needed(veus):
    (built,) = planned("two_matmuls", veus, BY_COLUMNS)
    arrays = inputs_of("two_matmuls")
    inputs = {f"x{i}": a for i, a in enumerate(arrays)}
    want = replace(built, state=built.cuda.constants[-1].copy()).run(inputs)
    places = places_of(built, Wait)
    assert places
    assert all(goes_wrong(built, None, without(built, Wait, at), inputs, want) for at in places)


def strip(source, call):
    """The text without the calls of a barrier."""
    lines = source.splitlines()
    kept = ["" if line.strip().startswith(f"{call}(") else line for line in lines]
    assert kept != lines
    return "\n".join(kept)


def test_block_barriers_are_needed():
    built, inputs, want = crossing()
    assert goes_wrong(built, strip(built.source, "rammer_block_barrier"), None, inputs, want)


def test_rtask_barriers_are_needed():
    (built,) = planned("two_matmuls", 3)
    inputs = {f"x{i}": a for i, a in enumerate(inputs_of("two_matmuls"))}
    want = replace(built, state=built.cuda.constants[-1].copy()).run(inputs)
    assert goes_wrong(built, strip(built.source, "rammer_rtask_barrier"), None, inputs, want)
