"""The writer of the log: what it appends, what it claims, and that stock TVM reads its database."""

import dataclasses
import json

import numpy as np
import pytest
import tvm
from tvm import relax, s_tir
from tvm.relax import op
from tvm.s_tir.meta_schedule.database import JSONDatabase

from tests.functions import TARGET, fused, relax_module
from tests.tuning.models import CPU, matmul_task, outcome, relu_task, task_of, trial_of
from tvm_rammer.ir import RKernel
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen.measured import code_hash
from tvm_rammer.rkernel_gen.tiling import Tiling
from tvm_rammer.tuning.log.database import DATABASE
from tvm_rammer.tuning.log.lines import TuningLogWarning
from tvm_rammer.tuning.log.reader import RKERNELS, TuningLog, folder_of
from tvm_rammer.tuning.log.writer import CLAIMS, LogWriter
from tvm_rammer.tuning.trial import Outcome, Trial


def test_what_is_added_is_measured(tmp_path):
    trial = trial_of(matmul_task())
    with LogWriter(tmp_path, CPU) as log:
        log.add(trial, outcome(5.0))
    ((tiling, time),) = TuningLog(tmp_path).measured(trial.task.function).items()
    assert tiling == trial.tiling
    assert (time.rtask_us, time.operator_us, time.code) == (2.5, 6.0, code_hash(trial.kernel))
    with LogWriter(tmp_path, CPU) as again:
        assert again.tried(trial.task.function) == {trial.tiling: (code_hash(trial.kernel), outcome(5.0))}


def test_a_failure_is_remembered_but_not_measured(tmp_path):
    trial = trial_of(relu_task())
    with LogWriter(tmp_path, CPU) as log:
        log.add(trial, Outcome(error="crashed"))
        assert log.claim([trial]) == []
    assert TuningLog(tmp_path).measured(trial.task.function) == {}


def test_nobody_tries_what_another_is_trying_or_has_tried(tmp_path):
    trials = [trial_of(relu_task(), number) for number in range(4)]
    with LogWriter(tmp_path, CPU) as one, LogWriter(tmp_path, CPU) as other:
        assert one.claim(trials[:2]) == trials[:2]
        assert other.claim(trials[:3]) == trials[2:3]
        one.add(trials[0], outcome())
        one.claim([])
        assert other.claim(trials) == trials[1:]


def test_other_code_of_the_same_tiling_is_tried_again(tmp_path):
    trial = trial_of(relu_task())
    changed = dataclasses.replace(trial, kernel=trial_of(relu_task(), -1).kernel)
    with LogWriter(tmp_path, CPU) as log:
        log.add(trial, outcome())
        assert log.claim([trial, changed]) == [changed]


def test_all_tuners_together_make_as_many_trials_as_are_left(tmp_path):
    trials = [trial_of(relu_task(), number) for number in range(9)]
    left = {trials[0].task.function.key: 4}
    with LogWriter(tmp_path, CPU) as one, LogWriter(tmp_path, CPU) as other:
        assert one.claim(trials[:3], left) == trials[:3]
        assert other.claim(trials[4:], left) == trials[4:5]
        one.add(trials[0], outcome())
        other.add(trials[4], outcome())
        assert other.claim(trials[5:], left) == []
        one.add(trials[1], outcome())
        # What `one` still claims is not made: its next claim gives it back.
        assert one.claim([], left) == []
        assert other.claim(trials[5:], left) == trials[5:6]


def test_a_tuner_that_starts_later_counts_from_what_it_found(tmp_path):
    trials = [trial_of(relu_task(), number) for number in range(9)]
    key = trials[0].task.function.key
    with LogWriter(tmp_path, CPU) as one:
        assert one.claim(trials[:3], {key: 4}) == trials[:3]
        one.add(trials[0], outcome())
        with LogWriter(tmp_path, CPU) as other:
            assert other.claim(trials[4:], {key: 3}) == trials[4:5]


def test_trials_of_other_code_do_not_count(tmp_path):
    old, new = trial_of(relu_task()), trial_of(relu_task(), 1)
    changed = dataclasses.replace(old, kernel=trial_of(relu_task(), -1).kernel)
    left = {old.task.function.key: 1}
    with LogWriter(tmp_path, CPU) as log:
        log.add(old, outcome())
    with LogWriter(tmp_path, CPU) as one, LogWriter(tmp_path, CPU) as other:
        assert one.claim([changed], left) == [changed]
        assert other.claim([new], left) == []
        one.add(changed, outcome())
        assert other.claim([new], left) == []


def test_claims_of_the_dead_are_void(tmp_path):
    trial = trial_of(relu_task())
    folder = folder_of(tmp_path, CPU)
    folder.mkdir()
    label = f"{trial.task.function.key} {trial.tiling.label} {code_hash(trial.kernel)}"
    (folder / f"{CLAIMS}.dead").write_text(json.dumps([label]))
    with LogWriter(tmp_path, CPU) as log:
        assert log.claim([trial]) == [trial]
    assert not list(folder.glob(f"{CLAIMS}*"))


def stock_fused(module):
    """As TVM's default pipeline fuses."""
    passes = [
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    ]
    with TARGET:
        return tvm.transform.Sequential(passes)(module)


def scheduled_trial(parts, task=None):
    """A product whose rows are cut into rTasks by a schedule, with its weights rewritten as MetaSchedule does it."""
    task = task or task_of(fused([(8, 16), (16, 32)], op.matmul), 2, "matmul", frozenset({1}))
    named = task.function.func.with_attr("global_symbol", "main")  # kept: else the schedule changes the original
    sch = s_tir.Schedule(tvm.IRModule({"main": named}))
    block = sch.get_sblock("matmul")
    i, j, k = sch.get_loops(block)
    part, i = sch.split(i, [parts, None])
    j, lane = sch.split(j, [None, 16])
    sch.reorder(part, i, j, k, lane)
    sch.parallel(part)
    sch.vectorize(lane)
    spec = RKernel("matmul_k", "matmul", parts, 1.0)
    kernel = ScheduledKernel(spec, sch.mod["main"].without_attr("global_symbol"), trace=sch.trace)
    return Trial(task, Tiling("fake", (("parts", parts),), parts, 1.0), kernel)


def test_stock_tvm_uses_what_a_schedule_made(tmp_path):
    with LogWriter(tmp_path, CPU) as log:
        for parts, us in ((2, 50.0), (4, 20.0), (8, 30.0)):
            log.add(scheduled_trial(parts), outcome(us))
    folder = folder_of(tmp_path, CPU)
    assert [len((folder / name).read_text().splitlines()) for name in DATABASE] == [1, 3]
    module = stock_fused(relax_module([(8, 16), (16, 32)], op.matmul))
    with TARGET, JSONDatabase(work_dir=str(folder)):
        applied = relax.transform.MetaScheduleApplyDatabase()(module)
    (func,) = [f for f in applied.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    assert func.attrs["tirx.is_scheduled"]
    assert "T.parallel(4)" in func.script().replace("T.int64(4)", "4")
    vm = relax.VirtualMachine(tvm.compile(applied, TARGET), tvm.cpu())
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 16), (16, 32)))
    result = vm["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w)).numpy()
    np.testing.assert_allclose(result, x @ w, rtol=1e-4, atol=1e-5)


STOCK = {
    "product": ([(8, 16), (16, 32)], op.matmul),
    "convolution": ([(1, 16, 14, 14), (32, 16, 3, 3)], lambda x, w: op.nn.conv2d(x, w, padding=1)),
    "softmax": ([(8, 64)], op.nn.softmax),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOCK)
def test_stock_tvm_uses_constructed_kernels(tmp_path, name):
    shapes, build = STOCK[name]
    module = stock_fused(relax_module(shapes, build))
    (func,) = [f for f in module.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    task = task_of(func, len(shapes), name, frozenset({1} if len(shapes) > 1 else ()))
    trials = [trial_of(task, number) for number in range(len(task.space))]
    trial = next(t for t in trials if t.kernel.trace is not None)
    with LogWriter(tmp_path, CPU) as log:
        log.add(trial, outcome())
    with TARGET, JSONDatabase(work_dir=str(folder_of(tmp_path, CPU))):
        applied = relax.transform.MetaScheduleApplyDatabase()(module)
    (made,) = [f for f in applied.functions.values() if isinstance(f, tvm.tirx.PrimFunc)]
    assert made.attrs["tirx.is_scheduled"]
    rng = np.random.default_rng(0)
    tensors = [tvm.runtime.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]
    right, got = (
        relax.VirtualMachine(tvm.compile(m, TARGET), tvm.cpu())["main"](*tensors).numpy() for m in (module, applied)
    )
    np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


def test_workloads_are_numbered_by_what_all_tuners_wrote(tmp_path):
    relu = task_of(fused([(8, 16), (16, 64)], op.matmul), 2, "matmul", frozenset({1}))
    with LogWriter(tmp_path, CPU) as one, LogWriter(tmp_path, CPU) as other:
        one.add(scheduled_trial(2), outcome())
        other.add(scheduled_trial(2, relu), outcome())
        one.add(scheduled_trial(4, relu), outcome())
        other.add(scheduled_trial(8), outcome())
    folder = folder_of(tmp_path, CPU)
    assert [json.loads(line)[0] for line in (folder / DATABASE[1]).read_text().splitlines()] == [0, 1, 1, 0]
    assert len(JSONDatabase(work_dir=str(folder)).get_all_tuning_records()) == 4


def test_a_torn_database_is_mended_by_the_next_tuner(tmp_path):
    with LogWriter(tmp_path, CPU) as log:
        log.add(scheduled_trial(2), outcome())
    folder = folder_of(tmp_path, CPU)
    for name in (*DATABASE, RKERNELS):
        with (folder / name).open("a") as file:
            file.write('["torn')
    with pytest.warns(TuningLogWarning, match="has no end"), LogWriter(tmp_path, CPU) as log:
        log.add(scheduled_trial(4), outcome())
    relu = task_of(fused([(8, 16), (16, 64)], op.matmul), 2, "matmul", frozenset({1}))
    with LogWriter(tmp_path, CPU) as log:
        log.add(scheduled_trial(4, relu), outcome())
    assert len(JSONDatabase(work_dir=str(folder)).get_all_tuning_records()) == 3
