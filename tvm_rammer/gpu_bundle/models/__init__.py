"""The models of a bundle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import onnx

from ...zoo.inception_module import inception_module
from ...zoo.light import light
from ...zoo.lstm_stack import lstm_stack
from ...zoo.nasnet import nasnet
from ...zoo.onnx_lstm import onnx_lstm


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
        "squeezenet": BundleModel(
            "SqueezeNet 1.1, 224 by 224, batch 1, random weights, without its softmax.",
            partial(light, "squeezenet"),
            1e-4,
        ),
        "loop": BundleModel(
            "LSTM layers as ONNX has them, 3 layers of 256 over 100 steps: one loop.",
            lambda: onnx_lstm(3, 100, 256),
            2e-2,
        ),
        "nasnet": BundleModel("NASNet-A for CIFAR-10, 18 cells, batch 1.", nasnet, 1e-4),
    }
)
DEFAULT = ("lstm", "inception", "squeezenet")
"""What is packed where no models are named."""
