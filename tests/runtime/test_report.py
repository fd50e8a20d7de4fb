"""What a report says of the ways to run a region on a GPU."""

from dataclasses import replace

from tests.report_page.plans import handed_over, record_of
from tvm_rammer.device import preset
from tvm_rammer.runtime.report import explain, report


def record(makespan_us, **figures):
    made = record_of(replace(handed_over(["conv", "pool"]), makespan_us=makespan_us))
    return replace(made, device=replace(made.device, units=2, launch_us=2.0, node_us=1.0, **figures))


def test_the_ways_to_run_a_region_are_told_with_their_times():
    ways = {"a launch an operator": 7.0, "a CUDA graph": 6.0, "a launch a wave": 7.0, "rPrograms": 5.5}
    found = record(5.5)
    assert report(found)["ways"] == {"region0_0": ways}
    text = explain(found)
    assert "Ways to run region0_0, predicted: rPrograms 5.5 us (1 kernels), a CUDA graph 6.0 us (2 kernels)" in text
    assert "It runs as rPrograms all the same" not in text


def test_where_another_way_is_predicted_faster_it_is_said():
    text = explain(record(6.5))
    assert "It runs as rPrograms all the same, which is predicted to take 0.5 us more than a CUDA graph" in text


def test_on_a_cpu_and_for_models_with_shares_there_is_one_way():
    found = record(5.5)
    assert report(replace(found, shares=(1.0, 1.0)))["ways"] == {}
    assert report(replace(found, device=preset("cpu")))["ways"] == {}
