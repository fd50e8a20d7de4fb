"""Predicted against measured makespans: what is counted, on plans that are run."""

import numpy as np
import pytest
from tvm import relax

from tests.functions import relax_module
from tvm_rammer.ablations.prediction import count_ordered_pairs, predict_and_measure, relative_deviation
from tvm_rammer.ablations.variants import Variants
from tvm_rammer.device import host_cpu


def test_an_error_is_a_part_of_the_measured_time():
    assert relative_deviation(150.0, 100.0) == 0.5 and relative_deviation(50.0, 100.0) == -0.5


def test_only_pairs_that_are_apart_are_judged():
    same = [(1.0, [100.0, 100.0]), (2.0, [109.0, 109.0])]
    assert count_ordered_pairs(same) == (0, 0)
    assert count_ordered_pairs([*same, (3.0, [200.0, 200.0])]) == (2, 2)
    assert count_ordered_pairs([*same, (1.5, [200.0, 200.0])]) == (1, 2)


def test_pairs_that_are_apart_in_some_rounds_only_are_not_judged():
    steady = (1.0, [100.0, 100.0, 100.0, 100.0])
    assert count_ordered_pairs([steady, (2.0, [150.0, 150.0, 100.0, 100.0])]) == (0, 0)
    assert count_ordered_pairs([steady, (2.0, [150.0, 150.0, 150.0, 100.0])]) == (1, 1)


@pytest.mark.slow
def test_plans_that_differ_are_run():
    mod = relax_module([(16, 64), (64, 64)], lambda x, w: relax.op.tanh(relax.op.matmul(relax.op.nn.softmax(x), w)))
    inputs = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in ((16, 64), (64, 64))]
    configurations = [("wavefront", "auto"), ("wavefront", "auto"), ("global", "auto")]
    found = predict_and_measure(Variants(mod, host_cpu()), inputs, configurations, 2)
    assert found[0].policy == "wavefront" and 1 <= len(found) <= 2
    assert all(p.predicted_us > 0 and p.profiled_us > 0 and p.measured_us > 0 for p in found)
