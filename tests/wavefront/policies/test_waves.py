from tvm_rammer.wavefront.policies.waves import waves

from ..graphs import BRANCHES, make_graph


def test_a_chain_has_a_wave_for_each_operator() -> None:
    assert waves([(), (0,), (1,)]) == ((0,), (1,), (2,))


def test_independent_operators_are_one_wave() -> None:
    assert waves([(), (), ()]) == ((0, 1, 2),)


def test_an_operator_is_as_late_as_its_last_predecessor() -> None:
    assert waves([(), (), (0,), (1, 2), (0,)]) == ((0, 1), (2, 4), (3,))


def test_branches() -> None:
    assert waves(make_graph(BRANCHES).predecessors()) == ((0,), (1, 2, 3), (4, 5), (6,), (7,))


def test_no_operators_have_no_waves() -> None:
    assert waves([]) == ()
