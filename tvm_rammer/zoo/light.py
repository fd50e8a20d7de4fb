"""The light models of the `onnx` package: real architectures whose weights are left out."""

import pathlib

import onnx

from .onnx_tools.before_softmax import before_softmax
from .onnx_tools.random_weights import random_weights

FOLDER = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("light_*.onnx")))
"""Such as `squeezenet` and `resnet50`."""


def light_path(name: str) -> pathlib.Path:
    """The file of a model, whose weights are all equal."""
    return FOLDER / f"light_{name}.onnx"


def expected_output_path(name: str) -> pathlib.Path:
    """The file of what a model computes of an input of ones."""
    return FOLDER / f"light_{name}_output_0.pb"


def light(name: str, seed: int = 0) -> onnx.ModelProto:
    """Make a model whose outputs tell right from wrong: with random weights, and without its last softmax."""
    return before_softmax(random_weights(onnx.load(light_path(name)), seed))
