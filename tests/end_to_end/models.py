"""The light models of the onnx package, with random weights and without their softmax."""

import pathlib

import numpy as np
import onnx
import onnxruntime

from tvm_rammer.zoo.before_softmax import before_softmax
from tvm_rammer.zoo.random_weights import random_weights

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NAMES = sorted(path.stem.removeprefix("light_") for path in LIGHT.glob("light_*.onnx"))


def light(name: str) -> pathlib.Path:
    """The path of a light model."""
    return LIGHT / f"light_{name}.onnx"


def trained(name: str, seed: int = 0) -> onnx.ModelProto:
    """A light model whose outputs say something."""
    return before_softmax(random_weights(onnx.load(light(name)), seed))


def image(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """A seeded random input."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def by_onnxruntime(model: onnx.ModelProto, *arrays: np.ndarray) -> list[np.ndarray]:
    """What ONNX Runtime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()][: len(arrays)]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def is_flat(array: np.ndarray) -> bool:
    """Whether an output is so even that an error could hide in it."""
    return bool(array.std() < 1e-2 * np.abs(array).max())
