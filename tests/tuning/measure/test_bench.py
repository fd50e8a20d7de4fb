"""Kernels are checked before their times count, and a bad one harms nobody else."""

import dataclasses
import io
import logging

import numpy as np
import pytest
from tvm.relax import op
from tvm.script import tirx as T

from tests.functions import fused
from tests.tuning.models import CPU, matmul_task, outcome, relu_task, task_of, trial_of
from tvm_rammer.tuning.measure import bench as benches
from tvm_rammer.tuning.measure import evaluate
from tvm_rammer.tuning.measure.bench import KernelBench, LocalRunners
from tvm_rammer.tuning.search.progress import Progress
from tvm_rammer.tuning.trial import Trial


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benches, "RUN_S", 120.0)  # beside busy processes
        with KernelBench(CPU) as made:
            yield made


def with_code(trial, func):
    return dataclasses.replace(trial, kernel=dataclasses.replace(trial.kernel, func=func, packs={}))


def scalar_code(statement):
    """A function of two (4, 4) tensors that runs a statement and writes nothing."""

    @T.prim_func(private=True, s_tir=True)
    def run(x: T.Buffer((4, 4), "float32"), y: T.Buffer((4, 4), "float32")):
        with T.sblock("root"):
            T.reads(x[0:4, 0:4])
            T.writes(y[0:4, 0:4])
            T.evaluate(T.call_extern("int32", statement))

    return run


@pytest.mark.slow
def test_several_kernels_at_once(bench):
    trials = [trial_of(task, n) for task in (matmul_task(), relu_task()) for n in range(2)]
    found = list(bench.measure(trials))
    assert [id(t) for t, _ in found] == [id(t) for t in trials]
    for trial, got in found:
        assert not got.error
        assert 0 < got.rtask_us <= 50 * got.operator_us
        assert len(got.run_us) >= 3
        assert got.operator_us > 0
        assert trial.task.space


def test_packed_weights_get_the_right_values(bench):
    task = matmul_task(8, 16, 64)
    packed = next(t for t in (trial_of(task, n) for n in range(len(task.space))) if t.kernel.packs)
    ((_, got),) = bench.measure([packed])
    assert not got.error


@pytest.mark.slow
def test_a_wrong_kernel_a_crash_and_a_hang_fail_alone(bench):
    relu = relu_task((4, 4))
    good = trial_of(relu)
    wrong = Trial(relu, good.tiling, trial_of(task_of(fused([(4, 4)], op.exp), 1, "exp")).kernel)
    crash, hang = (with_code(good, scalar_code(name)) for name in ("abort", "pause"))
    first, second, last = (got for _, got in bench.measure([wrong, crash, good]))
    assert "wrong result: output 0: off by" in first.error
    assert second.error
    assert last.operator_us > 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benches, "RUN_S", 10.0)
        with KernelBench(CPU) as impatient:
            ((_, third),) = impatient.measure([hang])
    assert "killed after 10.0 seconds" in third.error
    ((_, last),) = bench.measure([good])
    assert last.operator_us > 0


def test_what_writes_nothing_is_wrong(bench):
    relu = relu_task((4, 4))
    ((_, got),) = bench.measure([with_code(trial_of(relu), scalar_code("getpid"))])
    assert "wrong result: output 0: values are not finite" in got.error


@pytest.mark.slow
def test_what_does_not_build_fails_alone(bench):
    good = trial_of(relu_task((4, 4)))
    bad = with_code(good, scalar_code("no_such_function_anywhere"))
    (_, first), (_, second) = bench.measure([bad, good])
    assert first.error
    assert not second.error


@pytest.mark.parametrize(
    ("got", "want", "expected"),
    [
        ([1.0, 2.0], [1.0, 2.0], ""),
        ([1.0, 2.1], [1.0, 2.0], "off by 1.0e-01 where the largest value is 2.0e+00"),
        ([1.0, np.nan], [1.0, 2.0], "values are not finite"),
        ([1.0, np.nan], [1.0, np.nan], ""),
        ([np.inf, 1.0], [-np.inf, 1.0], "values are not finite"),
    ],
)
def test_differences_are_told(got, want, expected):
    assert evaluate.difference(np.float32(got), np.float32(want)) == expected


def test_integers_must_be_equal():
    assert evaluate.difference(np.int32([1, 2]), np.int32([1, 2])) == ""
    assert evaluate.difference(np.int32([1, 3]), np.int32([1, 2])) == "1 values differ"


def test_half_precision_may_be_off_by_more():
    got, want = np.float16([100.0]), np.float16([101.0])
    assert evaluate.difference(got, want) == ""
    assert evaluate.difference(got.astype(np.float32), want.astype(np.float32)) != ""


def test_local_runs_come_one_by_one():
    assert LocalRunners().groups(["a", "b"]) == [["a"], ["b"]]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_progress(stream, caplog):
    caplog.set_level(logging.INFO, "tvm_rammer")
    task = relu_task()
    key = task.function.key
    with Progress(stream, {key: 5, "other": 4}, {key: 2}) as progress:
        progress.known(trial_of(task, 1), outcome(1.0))
        assert (progress.done, progress.total) == (2, 9)
        progress.skip("other", 4)
        for _ in range(3):
            progress.add(trial_of(task), outcome(2.0))
    if stream.isatty():
        assert "2/9" in stream.getvalue() and "2/5" in stream.getvalue()
        assert stream.getvalue().endswith("\r"), "the bar is taken away"
        (last,) = (line for line in stream.getvalue().splitlines() if line.startswith("5/5"))
    else:
        assert stream.getvalue() == ""
        (last,) = caplog.messages
    assert last.startswith("5/5: relu: best 2.0 us")
