"""The models of Rammer's evaluation: tiny ones run, and the real ones have the paper's numbers of operators."""

import numpy as np
import pytest

from tvm_rammer.zoo.alexnet import alexnet
from tvm_rammer.zoo.deepspeech2 import deepspeech2
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.nasnet import nasnet
from tvm_rammer.zoo.resnext import resnext29, resnext101
from tvm_rammer.zoo.seq2seq import seq2seq

from .onnx_models import count, run, tells_right_from_wrong
from .tiny import FORMS, TINY


@pytest.mark.parametrize("name", TINY)
def test_outputs_tell_right_from_wrong(name):
    assert tells_right_from_wrong(run(TINY[name]()))


@pytest.mark.parametrize("name", TINY)
def test_weights_depend_on_the_seed_alone(name):
    assert TINY[name](seed=1) == TINY[name](seed=1)
    assert TINY[name](seed=1) != TINY[name](seed=2)


@pytest.mark.parametrize("name", TINY)
def test_batches(name):
    one, three = run(TINY[name]()), run(TINY[name](batch=3))
    assert three.size == 3 * one.size


@pytest.mark.parametrize("name", FORMS)
def test_the_papers_form_and_todays_compute_the_same(name):
    papers, todays = (TINY[name](**{FORMS[name]: form}) for form in (False, True))
    assert len(papers.graph.node) > len(todays.graph.node)
    np.testing.assert_allclose(run(papers), run(todays), rtol=1e-4, atol=1e-5)


def test_a_decoder_reads_its_own_output():
    """One more step changes the output, though the inputs stay."""
    assert not np.allclose(run(seq2seq((1, 2), (1, 2), 8)), run(seq2seq((1, 2), (1, 3), 8)), atol=1e-3)


def test_deepspeech2_has_a_step_for_four_frames():
    model = deepspeech2(frames=300, bins=9, layers=1, hidden=4)
    assert run(model).shape == (75, 29)
    assert count(model)["MatMul"] == 2 * 75 - 1


def test_lstm_cells_of_the_paper_have_eight_products():
    assert count(lstm_stack(10, 100, 1, fused_gates=False))["MatMul"] == 10 * (8 * 100 - 4)


def weights(model):
    return sum(int(np.prod(t.dims)) for t in model.graph.initializer)


def test_nasnet_is_the_one_with_768_channels():
    model = nasnet()
    assert next(t.dims[0] for t in model.graph.initializer if t.name == "y_w") == 768
    assert 3.2e6 < weights(model) < 3.4e6  # the paper: 3.3 million
    assert count(model)["Concat"] == 18 + 2 + 2  # cells, reductions, and two sides that are halved
    assert tells_right_from_wrong(run(model))


@pytest.mark.slow
def test_resnext29_has_298_convolutions():
    model = resnext29()
    assert count(model)["Conv"] == 298
    assert 67e6 < weights(model) < 68e6  # Xie et al., table 7: 68.1 million, 0.7 of them in shortcuts
    assert tells_right_from_wrong(run(model))


@pytest.mark.slow
def test_resnext101_has_4262_convolutions():
    assert count(resnext101())["Conv"] == 4262
    todays = resnext101(grouped=True)
    assert count(todays)["Conv"] == 104
    assert 83e6 < weights(todays) < 85e6  # torchvision's has 83.5 million
    assert tells_right_from_wrong(run(todays))


@pytest.mark.slow
def test_alexnet_runs():
    assert tells_right_from_wrong(run(alexnet()))
