"""Predicted ways to run a graph, against times that are added up by hand."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.wavefront.graphs import DEVICE, DIAMOND, make_graph, make_kernels, random_cases
from tvm_rammer.wavefront import predict_ways, schedule
from tvm_rammer.wavefront.predict.ways import GRAPH, LAUNCHES, RPROGRAMS, WAVES

PRICES = replace(DEVICE, units=2, launch_us=5.0, node_us=3.0, signal_us=1.0, barrier_us=2.0)


def ways_of(reads, device=PRICES, **tilings):
    graph, kernels = make_graph(reads), make_kernels(**{name: tilings.get(name, (1, 1.0)) for name in reads})
    programs = schedule(graph, kernels, device, veus=device.units)
    ways = predict_ways(graph, kernels, device, programs)
    assert [way.us for way in ways] == sorted(way.us for way in ways)
    assert sum(p.makespan_us for p in programs) == next(way.us for way in ways if way.name == RPROGRAMS)
    return {way.name: (way.kernels, way.us) for way in ways}


def test_a_chain():
    ways = ways_of({"a": "", "b": "a", "c": "b"})
    assert ways[LAUNCHES] == (3, 3 * (5 + 1))
    assert ways[WAVES] == (3, 3 * (5 + 1))
    assert ways[GRAPH] == (3, 5 + 1 + 3 + 1 + 3 + 1)
    assert ways[RPROGRAMS] == (1, 5 + 3)  # all on one vEU


def test_branches_are_side_by_side_in_a_graph_but_not_in_a_stream():
    ways = ways_of(DIAMOND, b=(1, 4.0), c=(1, 6.0))
    assert ways[LAUNCHES] == (4, 4 * 5 + 1 + 4 + 6 + 1)
    assert ways[WAVES] == (3, 3 * 5 + 1 + 6 + 1)
    assert ways[GRAPH] == (4, 5 + 1 + 3 + 6 + 3 + 1)


def test_blocks_of_a_graph_share_the_units():
    # b's three blocks come first; c's single one waits for the unit that is free first.
    assert ways_of({"b": "", "c": ""}, b=(3, 2.0))[GRAPH] == (2, 5 + 4)
    assert ways_of({"b": "", "c": ""}, b=(4, 2.0))[GRAPH] == (2, 5 + 5)


def test_a_node_whose_price_is_not_known_costs_a_launch():
    chain = {"a": "", "b": "a"}
    assert ways_of(chain, replace(PRICES, node_us=0.0))[GRAPH] == ways_of(chain, replace(PRICES, node_us=5.0))[GRAPH]


PRICE = st.sampled_from([0.01, 0.3, 0.6, 1.1, 2.1, 5.0])


@given(random_cases(), PRICE, PRICE, PRICE)
def test_no_plan_is_predicted_to_take_longer_than_single_launches(case, launch_us, signal_us, barrier_us):
    device = replace(PRICES, units=case.veus, launch_us=launch_us, signal_us=signal_us, barrier_us=barrier_us)
    graph, kernels = make_graph(case.reads, case.nbytes), make_kernels(**case.tilings)
    programs = schedule(graph, kernels, device, veus=device.units)
    us = {way.name: way.us for way in predict_ways(graph, kernels, device, programs)}
    assert us[RPROGRAMS] <= us[LAUNCHES] * (1 + 1e-9)
