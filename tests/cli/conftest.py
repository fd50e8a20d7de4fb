"""A model for commands that tell no model from another."""

import onnx
import pytest

from .shell import relu


@pytest.fixture
def model(tmp_path):
    onnx.save(relu(), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")
