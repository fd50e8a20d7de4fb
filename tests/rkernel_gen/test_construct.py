"""Which tilings are built, and which of the kernels the scheduler sees."""

from collections import Counter
from dataclasses import replace

import pytest
from tvm import relax
from tvm.error import InternalError

from tests.functions import fused
from tvm_rammer.device import PRESETS, host_cpu
from tvm_rammer.ir import RKernel
from tvm_rammer.kernel import ScheduledKernel
from tvm_rammer.rkernel_gen import construct
from tvm_rammer.rkernel_gen.construct import MAX_KERNELS, build, choose, space
from tvm_rammer.rkernel_gen.cpu.generic.rule import GenericRule
from tvm_rammer.rkernel_gen.measured import MeasuredTime, code_hash
from tvm_rammer.rkernel_gen.select import pareto
from tvm_rammer.rkernel_gen.tiling import Function, Tiling

op = relax.op
DEVICES = {"cpu": replace(host_cpu(), units=2), "cuda": PRESETS["cuda:h200"]}
OPERATORS = {
    "conv": (lambda x, w: op.nn.relu(op.nn.conv2d(x, w, padding=1)), [(1, 16, 28, 28), (32, 16, 3, 3)], {1}),
    "matmul": (lambda x, w: op.matmul(x, w), [(64, 128), (128, 96)], {1}),
    "softmax": (lambda x: op.nn.softmax(x), [(40, 96)], set()),
    "exp": (lambda x: op.exp(x), [(64, 100)], set()),
}


def function(name, kind):
    make, shapes, constants = OPERATORS[name]
    return Function("op", fused(shapes, make), DEVICES[kind], frozenset(constants))


@pytest.mark.parametrize("kind", DEVICES)
@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_built_is_what_the_space_says(name, kind):
    subject = function(name, kind)
    tilings = space(subject)
    assert len({t.label for t in tilings}) == len(tilings) >= 4
    times = [t.rank_us(subject.device.units) for t in tilings]
    assert times == sorted(times)
    labels = {f"op_{t.label}": t for t in tilings}
    kernels = choose(subject)
    assert 2 <= len({k.spec.num_rtasks for k in kernels}) == len(kernels) <= MAX_KERNELS[kind]
    for kernel in kernels:
        tiling = labels[kernel.spec.name]
        assert (kernel.spec.num_rtasks, kernel.spec.rtask_us) == (tiling.num_rtasks, tiling.rtask_us)
        assert not kernel.spec.measured and kernel.spec.function == "op"


@pytest.mark.parametrize(
    ("make", "data", "weight", "row_parts"),
    [
        (op.matmul, (24, 512), (512, 2048), 1),
        (op.matmul, (2048, 64), (64, 64), 2),
        (op.nn.conv2d, (1, 512, 7, 7), (512, 512, 3, 3), 1),
        (op.nn.conv2d, (1, 16, 112, 112), (16, 16, 3, 3), 2),
    ],
)
def test_large_inputs_are_split_among_units(make, data, weight, row_parts):
    subject = Function("op", fused([data, weight], make), DEVICES["cpu"], frozenset({1}))
    halves = [t for t in space(subject) if t.num_rtasks == 2 and t.rule != "generic"]
    assert halves[0]["row_parts"] == row_parts
    assert halves[0].refill_us < min(t.refill_us for t in halves if t["row_parts"] != row_parts)


class UnbuildableRule:
    """A rule that has tilings and no code."""

    name = "unbuildable"

    def tilings(self, function):
        return [Tiling("unbuildable", (("parts", n),), n, 0.001) for n in (1, 2, 4)]

    def build(self, function, choices):
        return None


def test_a_tier_from_which_nothing_can_be_built_is_skipped(monkeypatch):
    subject, dropped = function("matmul", "cpu"), Counter()
    monkeypatch.setattr(construct, "rules", lambda device: ((UnbuildableRule(),), (GenericRule(),)))
    assert {t.rule for t in space(subject)} == {"unbuildable"}
    kernels = choose(subject, dropped=dropped)
    assert kernels and all("generic" in k.spec.name for k in kernels)
    assert dropped["no single kernel within an rTask's limits"] == 2


class OddRule:
    """A rule whose schedules TVM refuses: of some functions in the middle of its own assertions."""

    name = "odd"

    def __init__(self, step):
        self.step = step

    def tilings(self, function):
        if self.step == "tilings":
            raise InternalError("Check failed: rfactor")
        return [Tiling("odd", (("parts", n),), n, 0.001) for n in (1, 2, 4)]

    def build(self, function, choices):
        raise InternalError("Check failed: rfactor")


@pytest.mark.parametrize(("step", "tried"), [("tilings", 1), ("build", 2)])
def test_a_rule_that_tvm_refuses_is_dropped_for_the_function(monkeypatch, step, tried):
    subject, dropped = function("matmul", "cpu"), Counter()
    monkeypatch.setattr(construct, "rules", lambda device: ((OddRule(step),), (GenericRule(),)))
    kernels = choose(subject, dropped=dropped)
    assert kernels and all("generic" in k.spec.name for k in kernels)
    assert dropped["TVM refuses the schedule of the rule odd"] == tried


@pytest.mark.parametrize("kind", DEVICES)
def test_a_function_without_names_has_the_same_key(kind):
    subject = function("conv", kind)
    other = Function("other", subject.func.with_attr("global_symbol", "renamed"), subject.device, subject.constants)
    assert other.key == subject.key
    assert replace(subject, constants=frozenset()).key != subject.key
    assert function("exp", kind).key != subject.key


def measured(subject, *times):
    return {t: MeasuredTime(us, 0.0, code_hash(build(subject, t))) for t, us in times}


def test_a_measured_tiling_is_preferred_to_predicted_ones():
    subject = function("matmul", "cpu")
    tilings = [t for t in space(subject) if t.num_rtasks == 2]
    best, last = tilings[0], tilings[-1]
    (kernel,) = [k for k in choose(subject, measured(subject, (last, 0.5))) if k.spec.measured]
    assert kernel.spec.name == f"op_{last.label}" and kernel.spec.rtask_us == 0.5
    (kernel,) = [k for k in choose(subject, measured(subject, (last, 0.5), (best, 0.25))) if k.spec.measured]
    assert kernel.spec.name == f"op_{best.label}" and kernel.spec.rtask_us == 0.25


def test_the_time_of_other_code_is_ignored():
    subject = function("matmul", "cpu")
    tiling = space(subject)[0]
    made = choose(subject, {tiling: MeasuredTime(0.01, 0.0, "other")})
    assert not any(k.spec.measured for k in made)
    (same,) = [k for k in made if k.spec.name == f"op_{tiling.label}"]
    assert same.spec.rtask_us == tiling.rtask_us


def test_a_tiling_whose_logged_result_was_wrong_is_never_chosen():
    subject, dropped = function("matmul", "cpu"), Counter()
    (first, *_) = choose(subject)
    tiling = next(t for t in space(subject) if first.spec.name == f"op_{t.label}")
    wrong = {tiling: MeasuredTime(0.0, 0.0, code_hash(first), wrong=True)}
    made = choose(subject, wrong, dropped)
    assert made and first.spec.name not in {k.spec.name for k in made}
    assert dropped["logged with a wrong result"] == 1
    other_code = {tiling: MeasuredTime(0.0, 0.0, "other", wrong=True)}
    assert first.spec.name in {k.spec.name for k in choose(subject, other_code)}


def test_the_time_of_the_operator_counts_where_rtasks_compete_for_bandwidth():
    device = replace(DEVICES["cpu"], launch_us=2.0)
    tiling = Tiling("rule", (), num_rtasks=8, rtask_us=0.0)
    assert MeasuredTime(3.0, 26.0, "").alone_us(tiling, device) == 6.0
    assert MeasuredTime(7.0, 26.0, "").alone_us(tiling, device) == 7.0
    assert MeasuredTime(1.0, 19.0, "").alone_us(tiling, device) == 1.0  # too short: the launch varies as much


def test_an_unknown_rule_or_choice_builds_nothing():
    subject = function("exp", "cpu")
    assert build(subject, replace(space(subject)[0], rule="unheard_of")) is None
    assert build(subject, replace(space(subject)[0], choices=(("rtasks", -1),))) is None


def kernel(name, rtask_us, rtasks, registers=None, shared=0, threads=1):
    return ScheduledKernel(RKernel(name, "f", rtasks, rtask_us, threads, shared, registers), None)


def test_the_pareto_set():
    coarse, fine = kernel("coarse", 10.0, 2), kernel("fine", 3.0, 8)
    slower, larger = kernel("slower", 11.0, 2), kernel("larger", 3.0, 8, shared=64)
    twin, lean = kernel("twin", 10.0, 2), kernel("lean", 12.0, 2, registers=0)
    assert pareto([slower, fine, coarse, larger, twin, lean]) == (coarse, fine)
    small, large = kernel("small", 10.0, 4, registers=32, threads=64), kernel("large", 9.0, 4, registers=64, threads=64)
    assert pareto([small, large]) == (large, small)
    assert pareto([]) == ()
