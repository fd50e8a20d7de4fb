"""Several models in one module, with and without shares of the vEUs."""

import numpy as np
import pytest
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tvm_rammer.errors import ModelError, ScheduleError
from tvm_rammer.ir import Run

op = relax.op


def first():
    return relax_module([(8, 32), (32, 48)], lambda x, w: op.tanh(op.matmul(x, w)))


def second():
    return relax_module([(1, 4, 12, 12)], lambda x: op.nn.relu(op.nn.max_pool2d(x, (3, 3))))


def arrays(module, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(spec.shape).astype(spec.dtype) for spec in module.inputs]


@pytest.mark.parametrize("shares", [None, (1, 1), (3, 1)])
def test_models_side_by_side_give_what_each_gives(shares):
    together = tvm_rammer.compile_together([first(), second(), first()][: len(shares or "abc")], shares=shares)
    names = ["model0_x0", "model0_x1", "model1_x0", "model2_x0", "model2_x1"]
    assert [spec.name for spec in together.inputs] == names[: len(together.inputs)]
    given = arrays(together)
    results = together(*given)
    np.testing.assert_allclose(results[0], tvm_rammer.compile(first())(*given[:2]), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(results[1], tvm_rammer.compile(second())(given[2]))
    if not shares:
        np.testing.assert_allclose(results[2], tvm_rammer.compile(first())(*given[3:]), rtol=1e-5, atol=1e-6)
    assert len(together.rprograms) == 1


@pytest.mark.slow
def test_with_shares_no_veu_works_for_two_models():
    module = tvm_rammer.compile_together([first(), second()], shares=[1, 3], target="cuda:h200")
    (program,) = module.rprograms
    owners = []
    for lane in program.lanes:
        names = {program.graph.operators[i.operator].name for i in lane if isinstance(i, Run)}
        owners.append("pool" if any("pool" in n for n in names) else "matmul" if names else None)
        assert len({"pool" in n for n in names}) <= 1
    assert len(program.lanes) == 132
    assert set(owners[:34]) <= {"matmul", None} and set(owners[34:]) <= {"pool", None}


@pytest.mark.parametrize("arguments", [{"shares": [1]}, {"shapes": [None]}])
def test_shares_and_shapes_are_one_a_model(arguments):
    with pytest.raises(ModelError, match=r"2 models, \d shapes, \d shares"):
        tvm_rammer.compile_together([first(), second()], **arguments)
    with pytest.raises(ModelError, match="0 models"):
        tvm_rammer.compile_together([])


def test_shares_are_positive():
    with pytest.raises(ScheduleError, match="positive"):
        tvm_rammer.compile_together([first(), second()], shares=[1, 0])
