"""Indices have the same values after TVM has made buffers flat: in kernels, in rTask functions, in stock TVM's own."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.script import tirx as T

from tests.emulation.models import Way, emulated_model
from tests.functions import TARGET, chosen
from tests.hostile import by_onnxruntime, model, results
from tests.marks import slow_but
from tvm_rammer.device import host_cpu, preset
from tvm_rammer.keep_indices import hide_quotients, keep_indices
from tvm_rammer.rkernel_gen.cuda import lowered

ROWS, WINDOW, RTASKS = 16, 4, 2


def run(func: tirx.PrimFunc, x: np.ndarray, *more: int) -> np.ndarray:
    """What TVM's own lowering of a function of x makes."""
    built = tvm.compile(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), target=TARGET)
    y = tvm.runtime.tensor(np.zeros([int(n) for n in func.params[1].shape], "float32"))
    built["main"](tvm.runtime.tensor(x), y, *more)
    return y.numpy()


def repeated(shift: int, times: int) -> tirx.PrimFunc:
    """A kernel that repeats rows, and moves along them: its two loops are fused."""

    @T.prim_func(private=True, s_tir=True)
    def main(x: T.Buffer((3, 2), "float32"), y: T.Buffer((12, 6), "float32")) -> None:
        for t in T.parallel(72):
            with T.sblock("y"):
                i = T.axis.spatial(12, t // 6)
                j = T.axis.spatial(6, t % 6)
                y[i, j] = T.if_then_else(j >= 2, x[i % 3, (j - shift) // times], T.float32(0))

    return main


def test_a_remainder_that_is_moved_and_divided() -> None:
    x = np.arange(6, dtype="float32").reshape(3, 2)
    want = np.where(np.arange(6) >= 2, x[np.arange(12) % 3][:, (np.arange(6) - 2) // 3], 0)
    kernel = repeated(2, 3)
    assert np.array_equal(run(keep_indices(kernel), x), want)
    assert not np.array_equal(run(kernel, x), want), "TVM is mended: keep_indices can go"


@pytest.mark.parametrize(("shift", "times"), [(0, 3), (3, 3)])
def test_what_stays_the_same_is_left_alone(shift: int, times: int) -> None:
    kernel = repeated(shift, times)
    assert keep_indices(kernel).same_as(kernel)


@T.prim_func(private=True, s_tir=True)
def backwards(x: T.Buffer((T.int64(5), T.int64(2)), "float32"), y: T.Buffer((T.int64(160), T.int64(2)), "float32")):
    for ax0, ax1 in T.grid(T.int64(160), T.int64(2)):
        with T.sblock("y"):
            i, j = T.axis.remap("SS", [ax0, ax1])
            y[i, j] = x[j // T.int64(2) + (j // T.int64(2) + (T.int64(159) - i)) // T.int64(32), j]


def test_a_reversed_repetition() -> None:
    x = np.arange(10, dtype="float32").reshape(5, 2)
    want = np.repeat(x, 32, 0)[::-1]
    assert np.array_equal(run(keep_indices(backwards), x), want)
    assert np.array_equal(run(hide_quotients(backwards), x), want)
    assert not np.array_equal(run(backwards, x), want), "TVM is mended: keep_indices can go"


@T.prim_func(private=True, s_tir=True)
def on_condition(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), at: T.Buffer((8,), "int32")) -> None:
    """Threads copy what is theirs: TVM knows by the conditions that i is 0, and that data are no positions."""
    for _block in T.thread_binding(1, thread="blockIdx.x"):
        for thread in T.thread_binding(64, thread="threadIdx.x"):
            kept = T.alloc_local((2,))
            for i in T.unroll(2):
                if (i * 64 + thread) // 32 < 2:
                    kept[i] = x[(at[thread // 8] + 3) % 8 * 8 + thread % 8]
                y[(i * 64 + thread) % 64] = T.if_then_else((i * 64 + thread) // 32 < 2, kept[i], T.float32(0))


def test_a_kernel_is_tried_as_it_will_be_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its quotients hidden, where they are to be: some schedules of products do not lower so."""
    device, seen = preset("cuda:h200"), []
    assert lowered.launch_of(on_condition, device) is not None
    monkeypatch.setattr(lowered, "keep_indices", lambda func: seen.append(func) or backwards)
    assert lowered.launch_of(on_condition, device) is None and seen == [on_condition]


def test_what_conditions_and_data_say_is_heeded() -> None:
    assert keep_indices(on_condition).same_as(on_condition)


@T.prim_func(private=True, s_tir=True)
def cancelled(x: T.Buffer((6, 5), "float32"), y: T.Buffer((12, 6), "float32")) -> None:
    for i0, j0 in T.grid(12, 6):
        with T.sblock("y"):
            i, j = T.axis.remap("SS", [i0, j0])
            y[i, j] = x[(i // 2 + j + j * -1 - 6) % 6, 4 - i // 3]


def test_an_axis_that_is_taken_away_again() -> None:
    """TVM's analysis of index maps divides by its factor, which is 0."""
    x = np.arange(30, dtype="float32").reshape(6, 5)
    i = np.arange(12)[:, None] + np.zeros((1, 6), int)
    assert np.array_equal(run(keep_indices(cancelled), x), x[(i // 2 - 6) % 6, 4 - i // 3])
    assert chosen("cancelled", cancelled, host_cpu())
    assert chosen("cancelled", cancelled, preset("cuda:h200"))


@T.prim_func(private=True, s_tir=True)
def held(x: T.Buffer((8,), "float32"), y: T.Buffer((12,), "float32")) -> None:
    kept = T.sblock_alloc_buffer((8,), "float32")
    for i0 in range(8):
        with T.sblock("kept"):
            i = T.axis.spatial(8, i0)
            kept[i] = x[i] + T.float32(1)
    for o0, i0 in T.grid(3, 5):
        with T.sblock("y"):
            i = T.axis.spatial(12, o0 * 5 + i0)
            T.where(o0 * 5 + i0 < 12)
            y[i] = kept[T.max(T.min(((i + i * -1) % 10 // 5 + i * -1) // 4, 7), 0)] + kept[i % 8]


def test_an_axis_that_is_taken_away_again_in_what_is_read_of_an_array() -> None:
    """So does its analysis of which part of an array is in use."""
    x = np.arange(8, dtype="float32")
    want = x[0] + 1 + (x + 1)[np.arange(12) % 8]
    assert np.array_equal(run(keep_indices(held), x), want)


@T.prim_func(private=True, s_tir=True)
def far(x: T.Buffer((T.int64(9),), "float32"), y: T.Buffer((T.int64(8),), "float32")):
    for i0 in range(T.int64(8)):
        with T.sblock("y"):
            i = T.axis.spatial(T.int64(8), i0)
            y[i] = x[(T.int64(2**33) - i) // T.int64(2**30)]


def test_what_is_divided_may_be_beyond_32_bits() -> None:
    x = np.arange(9, dtype="float32")
    want = [8, 7, 7, 7, 7, 7, 7, 7]
    assert np.array_equal(run(keep_indices(far), x), want)
    assert np.array_equal(run(hide_quotients(far), x), want)


@T.prim_func(s_tir=True)
def shifted(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), rtask: T.int32) -> None:
    """Rows of windows, each of which comes two rows later."""
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for i in range(8):
        if rtask * 8 + i >= 2:
            for j in range(4):
                y[rtask * 32 + i * 4 + j] = x[(rtask * 2 + (i - 2) // 4) % 4 * 16 + (i + 2) % 4 * 4 + j]
        else:
            for j in range(4):
                y[rtask * 32 + i * 4 + j] = x[(rtask * 2 + (i + 14) // 4) % 4 * 16 + (i + 2) % 4 * 4 + j]


@T.prim_func(s_tir=True)
def whole_windows(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), rtask: T.int32) -> None:
    """Windows that are not shifted."""
    T.func_attr({"global_symbol": "main", "tirx.noalias": True})
    for i, j in T.grid(8, 4):
        y[rtask * 32 + i * 4 + j] = x[(rtask * 8 + i) // 4 * 16 + (rtask * 8 + i) % 4 * 4 + j]


def test_shifted_windows_of_rtasks() -> None:
    x = np.arange(ROWS * WINDOW, dtype="float32")
    want = np.roll(x.reshape(ROWS, WINDOW), 2, axis=0)

    def all_rtasks(func: tirx.PrimFunc) -> np.ndarray:
        parts = [run(func, x, rtask).reshape(RTASKS, -1)[rtask] for rtask in range(RTASKS)]
        return np.concatenate(parts).reshape(ROWS, WINDOW)

    assert np.array_equal(all_rtasks(keep_indices(shifted)), want)
    assert not np.array_equal(all_rtasks(shifted), want), "TVM is mended: keep_indices can go"
    assert keep_indices(whole_windows).same_as(whole_windows)


def reversed_repetition(rows: int, times: int, columns: int, skipped: int) -> tuple:
    """A model that repeats rows, and takes them from the last one but some on; its input."""
    x = np.random.default_rng(0).standard_normal((rows, columns)).astype("float32")
    constants = {
        "apart": np.array([rows, 1, columns]), "times": np.array([rows, times, columns]),
        "together": np.array([rows * times, columns]), "begin": np.array([-1 - skipped]), "end": np.array([-(10**9)]),
        "axis": np.array([0]), "step": np.array([-1]),
        "w": np.random.default_rng(1).standard_normal((rows * times - skipped, columns)).astype("float32"),
    }  # fmt: skip
    nodes = [
        ("Reshape", ["x", "apart"], {}), ("Expand", ["y0", "times"], {}), ("Reshape", ["y1", "together"], {}),
        ("Slice", ["y2", "begin", "end", "axis", "step"], {}), ("Mul", ["y3", "w"], {}),
    ]  # fmt: skip
    proto = model(nodes, {"x": x}, constants)
    del proto.graph.output[:4]
    return proto, {"x": x}


@pytest.mark.parametrize("sizes", [(5, 13, 2, 0), (5, 32, 2, 1), (3, 32, 8, 3), (4, 6, 16, 0), (7, 4, 4, 1)], ids=str)
def test_models_with_reversed_repetitions(sizes: tuple[int, ...]) -> None:
    proto, feeds = reversed_repetition(*sizes)
    np.testing.assert_array_equal(results(proto, feeds), by_onnxruntime(proto, feeds))


@pytest.mark.parametrize("sizes", slow_but([(7, 4, 4, 1)], [(5, 13, 2, 0), (7, 4, 4, 1), (5, 8, 3, 0)]), ids=str)
def test_models_with_reversed_repetitions_on_a_gpu(sizes: tuple[int, ...]) -> None:
    proto, feeds = reversed_repetition(*sizes)
    got = emulated_model(proto, Way(units=2)).run(feeds, seed=0)
    np.testing.assert_array_equal(got, by_onnxruntime(proto, feeds))


def test_constants_and_what_is_left_to_stock_tvm() -> None:
    """Folded before anything runs, and a function that the caller has scheduled."""
    kept = backwards.with_attr("tirx.is_scheduled", True)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([5, 2], "float32"))
    values = np.arange(10, dtype="float32").reshape(5, 2)
    with builder.function("main", [x]):
        with builder.dataflow():
            out = relax.TensorType([160, 2], "float32")
            stock = builder.emit(relax.call_tir(builder.add_func(kept, "kept"), [x], out_ty=out))
            folded = relax.call_tir(builder.add_func(backwards, "folded"), [relax.const(values, "float32")], out_ty=out)
            total = builder.emit_output(relax.op.add(stock, builder.emit(folded)))
        builder.emit_func_output(total)
    target = tvm.target.Target(host_cpu().target_config())
    executable = tvm.compile(builder.get(), target, relax_pipeline="rammer")
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    want = np.repeat(values, 32, 0)[::-1]
    np.testing.assert_array_equal(main(tvm.runtime.tensor(values + 1)).numpy(), 2 * want + 1)


@T.prim_func(private=True, s_tir=True)
def under_conditions(x: T.Buffer((4, 64), "float32"), y: T.Buffer((4, 64), "float32")) -> None:
    for t in range(256):
        if t // 64 < 1:
            y[t // 64, t % 64] = x[t // 64 + 1 - 1, (t + 64) % 64]
        else:
            y[t // 64, t % 64] = T.if_then_else(t < 128, x[t // 64 + 1 - 1, t % 64], T.float32(0))


def test_what_conditions_leave_of_an_index_may_be_simplified() -> None:
    assert keep_indices(under_conditions).same_as(under_conditions)
    assert not tvm_ffi.structural_equal(hide_quotients(under_conditions), under_conditions)
