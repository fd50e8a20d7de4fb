"""The models of a bundle."""

import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import onnx

from ..zoo.before_softmax import before_softmax
from ..zoo.inception_module import inception_module
from ..zoo.lstm_stack import lstm_stack
from ..zoo.random_weights import random_weights


@dataclass(frozen=True, slots=True)
class BundleModel:
    """A model to measure.

    Parameters
    ----------
    description : str
        One sentence.
    build : callable
        Makes it.
    tolerance : float
        Largest error over the largest magnitude of the reference that passes. The kernels are compiled with nvcc's
        fast math, as TVM does; its tanh and exp have few correct digits, and a recurrence adds their errors up.
    """

    description: str
    build: Callable[[], onnx.ModelProto]
    tolerance: float


def squeezenet() -> onnx.ModelProto:
    """Build SqueezeNet from the light model of the `onnx` package, with random weights, without its softmax."""
    folder = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return before_softmax(random_weights(onnx.load(folder / "light_squeezenet.onnx")))


MODELS: Mapping[str, BundleModel] = MappingProxyType(
    {
        "lstm": BundleModel(
            "LSTM cells of primitive operators, 4 layers by 4 steps, hidden size 256, batch 1.",
            lambda: lstm_stack(4, 4, 256),
            2e-2,
        ),
        "inception": BundleModel(
            "Inception module 3a of GoogLeNet, 192 channels of 28 by 28, batch 1.", inception_module, 1e-4
        ),
        "squeezenet": BundleModel("SqueezeNet 1.1, 224 by 224, batch 1, without its softmax.", squeezenet, 1e-4),
    }
)
