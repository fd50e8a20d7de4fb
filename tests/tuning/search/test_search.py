"""What is tried next: distinct tilings of the space, seeded, of several numbers of rTasks, as the cost model says."""

import math

import pytest

from tests.tuning.models import CPU, matmul_task, relu_task, trial_of
from tvm_rammer.rkernel_gen.measured import code_hash
from tvm_rammer.tuning.search.search import POOL, LearnedCostModel, Search
from tvm_rammer.tuning.trial import Outcome


class Untaught:
    def has_times_of(self, task):
        return False


class LikesMany:
    """The more rTasks, the better."""

    def has_times_of(self, task):
        return True

    def predict(self, task, trials):
        return [float(t.tiling.num_rtasks) for t in trials]


def drain(search, model, count=8):
    found = []
    while proposed := search.propose(count, model):
        assert len(proposed) <= count
        found += proposed
    return found


@pytest.mark.parametrize("model", [Untaught(), LikesMany()])
def test_each_code_is_tried_once(model):
    task = matmul_task()
    tried = [code_hash(t.kernel) for t in drain(Search(task, 0), model)]
    assert sorted(tried) == sorted({code_hash(trial_of(task, i).kernel) for i in range(len(task.space))})


@pytest.mark.slow
def test_equal_seeds_try_equal_tilings():
    task = matmul_task()
    one, two, other = ([t.tiling for t in drain(Search(task, seed), LikesMany())] for seed in (3, 3, 4))
    assert one == two != other


def test_first_come_the_best_predicted_and_the_best_of_several_classes():
    task = matmul_task(64, 64, 64)
    first = [t.tiling for t in Search(task, 0).propose(8, Untaught())]
    assert task.space[0] in first
    assert len({math.frexp(t.num_rtasks)[1] for t in first}) >= 4


class LikesTheUnlikely:
    """The worse by the rules' own prediction, the better."""

    def has_times_of(self, task):
        return True

    def predict(self, task, trials):
        return [float(task.space.index(t.tiling)) for t in trials]


def test_then_what_the_cost_model_likes():
    task = matmul_task()
    assert 8 < len(task.space) <= POOL
    proposed = [t.tiling for t in Search(task, 0).propose(8, LikesTheUnlikely())]
    assert {*task.space[-3:]} <= {*proposed}


def test_what_a_log_knows_is_not_tried_again_unless_its_code_is_another():
    task = relu_task()
    search, (same, *_, changed) = Search(task, 0), task.space
    codes = [code_hash(trial_of(task, number).kernel) for number in (0, -1)]
    tried = {same: (codes[0], Outcome((1.0,), 1.0)), changed: ("another", Outcome((1.0,), 1.0))}
    trials, outcomes = search.restore(tried)
    assert [t.tiling for t in trials] == [same]
    assert outcomes == [Outcome((1.0,), 1.0)]
    left = [code_hash(t.kernel) for t in drain(search, Untaught())]
    assert codes[0] not in left
    assert codes[1] in left


@pytest.mark.slow
def test_the_cost_model_learns_which_kernels_are_fast():
    task = matmul_task(64, 64, 64)
    trials = [trial_of(task, i) for i in range(0, len(task.space), max(1, len(task.space) // 12))]
    model = LearnedCostModel()
    assert not model.has_times_of(task)
    outcomes = [Outcome((100.0 / t.tiling.num_rtasks,), 1.0) for t in trials[:-1]] + [Outcome(error="crashed")]
    model.update(task, trials, outcomes)
    assert model.has_times_of(task)
    scores = model.predict(task, trials)
    best, worst = max(range(len(trials)), key=scores.__getitem__), min(range(len(trials)), key=scores.__getitem__)
    assert outcomes[best].operator_us == min(o.operator_us for o in outcomes if o.operator_us)
    assert scores[worst] < 0.5 * scores[best]
    assert task.function.device == CPU
