"""PyTorch as a contender: its operators compute what the models do. Its GPU is this processor."""

import itertools
import json

import numpy as np
import pytest
from onnx import TensorProto, helper

from tvm_rammer.errors import ToolError
from tvm_rammer.gpu_bundle.files import Files
from tvm_rammer.gpu_bundle.models.peers import torch_graph
from tvm_rammer.gpu_bundle.models.reference import model_inputs, reference_outputs
from tvm_rammer.gpu_bundle.onsite.torch_peer import FILE, torch_runners
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.light import light
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.nasnet import nasnet
from tvm_rammer.zoo.onnx_lstm import onnx_lstm

MODELS = {
    "cells": lambda: lstm_stack(2, 2, 16),
    "branches": lambda: inception_module(size=7),
    "squeezenet": lambda: light("squeezenet"),
    "stacked layers": lambda: onnx_lstm(3, 4, 8),
    "nasnet": lambda: nasnet(cells=3, filters=4),
}


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def processor(torch, monkeypatch):
    """Where tensors stay that are moved to the GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Event", lambda **_: None)
    monkeypatch.setattr(torch.Tensor, "cuda", lambda tensor: tensor)


def packed(folder, proto):
    """The files of a model; its inputs."""
    files, inputs = Files(folder), model_inputs(proto)
    graph = torch_graph(proto, {name: files.add_array(array) for name, array in inputs.items()}, files)
    (folder / FILE).write_text(json.dumps(graph))
    return inputs


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_what_the_model_does(processor, tmp_path, name):
    proto = MODELS[name]()
    wanted = reference_outputs(proto, packed(tmp_path, proto))
    contender, make = next(torch_runners(tmp_path, tmp_path))
    assert contender == "torch"
    for got, want in itertools.zip_longest(make().results(), wanted):
        assert np.abs(np.array(got).reshape(want.shape) - want).max() < 1e-5 * np.abs(want).max()


def test_what_it_does_not_know_is_named(processor, tmp_path):
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    proto = helper.make_model(helper.make_graph([helper.make_node("Cos", ["x"], ["y"])], "g", [x], [y]))
    packed(tmp_path, proto)
    with pytest.raises(ToolError, match="no operator Cos; leave it out"):
        next(torch_runners(tmp_path, tmp_path))


def test_it_needs_a_gpu(torch, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ToolError, match="finds no GPU"):
        next(torch_runners(tmp_path, tmp_path))
