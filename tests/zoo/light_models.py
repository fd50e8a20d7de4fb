"""Light models whose hidden dense layers are narrow: the same operators, without the half gigabyte of weights."""

import re

import numpy as np
import onnx
from onnx import numpy_helper

from tvm_rammer.zoo.light import light_path
from tvm_rammer.zoo.onnx_tools.before_softmax import before_softmax
from tvm_rammer.zoo.onnx_tools.random_weights import random_weights

HIDDEN = {4096, 1024}
"""Widths of the layers fc6 and fc7 of AlexNet, VGG and ZFNet; what fc6 reads and fc8 makes stays as it is."""


def narrow(model: onnx.ModelProto, width: int = 256) -> onnx.ModelProto:
    """Give the layers fc6 and fc7 of a light model `width` channels; a model without them stays as it is.

    (DenseNet's fc6 is a convolution, whose shape has four numbers.)
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if re.search(r"fc[678]_[wb]_0__SHAPE$", tensor.name) and tensor.dims[0] <= 2:
            shape = [width if n in HIDDEN else n for n in numpy_helper.to_array(tensor)]
            tensor.CopyFrom(numpy_helper.from_array(np.array(shape, np.int64), tensor.name))
    return made


def narrow_light(name: str, seed: int = 0) -> onnx.ModelProto:
    """As `tvm_rammer.zoo.light.light`, but narrow."""
    return before_softmax(random_weights(narrow(onnx.load(light_path(name))), seed))
