"""Single operators to measure: from models that the papers on Rammer and IOS measure, and from mobile networks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One node.

    Parameters
    ----------
    kind : str
        ONNX's name of the operator.
    inputs : tuple of shape
        Given at run time.
    weights : tuple of shape
        Constants, after the inputs.
    attributes : mapping
    numbers : tuple of (tuple of number, or of such tuples)
        Further constants after these, with their values: integers are int64, others float32; an empty one is an
        optional input left out.
    outputs : int
    """

    kind: str
    inputs: tuple[Shape, ...]
    weights: tuple[Shape, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    numbers: tuple[tuple[Any, ...], ...] = ()
    outputs: int = 1

    def model(self, seed: int = 0) -> onnx.ModelProto:
        """Build the model: the node, and seeded normal weights."""
        rng = np.random.default_rng(seed)
        made = []
        for i, shape in enumerate(self.weights):
            values = rng.standard_normal(shape) / math.sqrt(max(1, math.prod(shape[1:])))
            made.append(numpy_helper.from_array(values.astype(np.float32), f"w{i}"))
        for i, numbers in enumerate(self.numbers):
            if numbers:
                integers = all(isinstance(n, int) for n in numbers)
                made.append(numpy_helper.from_array(np.array(numbers, np.int64 if integers else np.float32), f"n{i}"))
        names, results = [f"x{i}" for i in range(len(self.inputs))], [f"y{i}" for i in range(self.outputs)]
        weights = [f"w{i}" for i in range(len(self.weights))]
        given = [*names, *weights, *(f"n{i}" if numbers else "" for i, numbers in enumerate(self.numbers))]
        graph = helper.make_graph(
            [helper.make_node(self.kind, given, results, **self.attributes)],
            "operator",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in zip(names, self.inputs, strict=True)],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results],
            made,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        return onnx.shape_inference.infer_shapes(model)


def _conv(
    channels: int, size: int, filters: int, kernel: int, *, stride: int = 1, groups: int = 1, pad: int = -1
) -> Operator:
    pads = kernel // 2 if pad < 0 else pad
    attributes = {"pads": [pads] * 4, "strides": [stride] * 2, "group": groups}
    weights = ((filters, channels // groups, kernel, kernel), (filters,))
    return Operator("Conv", ((1, channels, size, size),), weights, attributes)


def _boxes(ratio: int) -> Operator:
    """A hundred boxes of up to 25 x 25 pixels, in 7 x 7 bins."""
    corners = np.random.default_rng(0).random((100, 4)) * 25
    corners[:, 2:] += corners[:, :2]
    numbers = tuple(map(tuple, corners.tolist())), (0,) * 100
    attributes = {"output_height": 7, "output_width": 7, "sampling_ratio": ratio}
    return Operator("RoiAlign", ((1, 256, 50, 50),), (), attributes, numbers)


def _pool(kind: str, channels: int, size: int, kernel: int, stride: int, pad: int = 0) -> Operator:
    attributes = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    return Operator(kind, ((1, channels, size, size),), (), attributes)


OPERATORS = {
    "squeezenet conv1 7x7/2": _conv(3, 224, 96, 7, stride=2, pad=0),
    "squeezenet squeeze 1x1 128-16": _conv(128, 55, 16, 1),
    "squeezenet expand 1x1 16-64": _conv(16, 55, 64, 1),
    "squeezenet expand 3x3 16-64": _conv(16, 55, 64, 3),
    "squeezenet conv10 512-1000": _conv(512, 13, 1000, 1),
    "inception_v1 3x3 96-128": _conv(96, 28, 128, 3),
    "inception_v1 5x5 16-32": _conv(16, 28, 32, 5),
    "inception_v1 1x1 192-64": _conv(192, 28, 64, 1),
    "inception_v3 3x3/2 288-384": _conv(288, 35, 384, 3, stride=2, pad=0),
    "inception_v3 1x7 128": Operator(
        "Conv", ((1, 128, 17, 17),), ((128, 128, 1, 7), (128,)), {"pads": [0, 3, 0, 3]}
    ),
    "densenet 3x3 128-32": _conv(128, 28, 32, 3),
    "densenet 1x1 256-128": _conv(256, 28, 128, 1),
    "deepspeech2 conv 41x11": Operator(
        "Conv", ((1, 1, 161, 200),), ((32, 1, 41, 11), (32,)), {"strides": [2, 2], "pads": [20, 5, 20, 5]}
    ),
    "alexnet conv2 groups 2": _conv(96, 26, 256, 5, groups=2),
    "alexnet conv4 groups 2": _conv(384, 12, 384, 3, groups=2),
    "resnext 16x64d, first": _conv(1024, 32, 1024, 3, groups=16),
    "resnext 64x4d, first": _conv(256, 32, 256, 3, groups=64),
    "shufflenet 1x1 groups 4": _conv(272, 28, 68, 1, groups=4),
    "shufflenet 1x1 groups 4, up": _conv(68, 28, 272, 1, groups=4),
    "shufflenet 1x1 24 channels": _conv(24, 56, 68, 1),
    "mobilenet depthwise 3x3": _conv(32, 112, 32, 3, groups=32),
    "mobilenet depthwise 3x3/2": _conv(96, 112, 96, 3, groups=96, stride=2),
    "mobilenet depthwise 3x3, deep": _conv(576, 14, 576, 3, groups=576),
    "nasnet depthwise 5x5": _conv(88, 28, 88, 5, groups=88),
    "nasnet depthwise 5x5/2": _conv(88, 55, 88, 5, groups=88, stride=2),
    "nasnet depthwise 7x7": _conv(44, 56, 44, 7, groups=44),
    "nasnet pointwise 44": _conv(44, 28, 44, 1),
    "lstm gemv 256": Operator("MatMul", ((1, 256),), ((256, 1024),)),
    "lstm gemv 1024": Operator("MatMul", ((1, 1024),), ((1024, 4096),)),
    "dense 4096-1000": Operator("Gemm", ((1, 4096),), ((4096, 1000), (1000,))),
    "matmul 128x768x768": Operator("MatMul", ((128, 768),), ((768, 768),)),
    "attention scores": Operator("MatMul", ((12, 128, 64), (12, 64, 128))),
    "batched matmul": Operator("MatMul", ((16, 64, 96), (16, 96, 64))),
    "conv1d": Operator("Conv", ((1, 64, 400),), ((128, 64, 5), (128,)), {"pads": [2, 2]}),
    "conv 3x3, dilated": Operator(
        "Conv", ((1, 64, 28, 28),), ((64, 64, 3, 3), (64,)), {"pads": [2] * 4, "dilations": [2, 2]}
    ),
    "transposed conv 4x4/2": Operator(
        "ConvTranspose", ((1, 64, 14, 14),), ((64, 32, 4, 4), (32,)), {"pads": [1] * 4, "strides": [2, 2]}
    ),
    "transposed conv1d 4/2": Operator(
        "ConvTranspose", ((1, 64, 100),), ((64, 32, 4), (32,)), {"pads": [1, 1], "strides": [2]}
    ),
    "max pool 3x3/2": _pool("MaxPool", 96, 109, 3, 2),
    "max pool 3x3, padded": _pool("MaxPool", 192, 28, 3, 1, 1),
    "max pool 1x4/4": Operator("MaxPool", ((1, 64, 296, 64),), (), {"kernel_shape": [1, 4], "strides": [1, 4]}),
    "average pool 3x3": _pool("AveragePool", 288, 35, 3, 1, 1),
    "global average pool": Operator("GlobalAveragePool", ((1, 1000, 13, 13),)),
    "softmax of a row": Operator("Softmax", ((1, 1000),)),
    "softmax of rows": Operator("Softmax", ((12, 128, 128),)),
    "log softmax of rows": Operator("LogSoftmax", ((128, 512),), (), {"axis": -1}),
    "layer norm": Operator("LayerNormalization", ((128, 768),), ((768,), (768,))),
    "instance norm": Operator("InstanceNormalization", ((1, 32, 56, 56),), ((32,), (32,))),
    "mean of rows": Operator("ReduceMean", ((64, 1000),), (), {"axes": [1], "keepdims": 0}),
    "lrn": Operator("LRN", ((1, 96, 54, 54),), (), {"size": 5}),
    "concat": Operator("Concat", ((1, 64, 55, 55), (1, 64, 55, 55)), (), {"axis": 1}),
    "concat, last axis": Operator("Concat", ((1, 2400, 64), (1, 2400, 32), (1, 2400, 48)), (), {"axis": 2}),
    "tile, last axis": Operator("Tile", ((1, 2400, 64),), numbers=((1, 1, 3),)),
    "transpose": Operator("Transpose", ((1, 12, 128, 64),), (), {"perm": [0, 2, 1, 3]}),
    "transpose to channels last": Operator("Transpose", ((1, 64, 28, 28),), (), {"perm": [0, 2, 3, 1]}),
    "channel shuffle": Operator("Transpose", ((1, 4, 68, 28, 28),), (), {"perm": [0, 2, 1, 3, 4]}),
    "resize nearest": Operator(
        "Resize", ((1, 64, 28, 28),), (), {"mode": "nearest", "coordinate_transformation_mode": "asymmetric",
                                           "nearest_mode": "floor"},
        numbers=((), (1.0, 1.0, 2.0, 2.0)),
    ),
    "resize linear": Operator(
        "Resize", ((1, 64, 28, 28),), (), {"mode": "linear"}, numbers=((), (1.0, 1.0, 2.0, 2.0)),
    ),
    "gather": Operator("Gather", ((1000, 256),), (), {"axis": 0}, numbers=(tuple(range(0, 640, 5)),)),
    "slice": Operator("Slice", ((1, 64, 56, 56),), (), {}, numbers=((0, 0, 3, 5), (1, 64, 51, 53), (0, 1, 2, 3))),
    "pad": Operator("Pad", ((1, 64, 28, 28),), (), {}, numbers=((0, 0, 2, 2, 0, 0, 3, 3),)),
    "split": Operator("Split", ((1, 96, 28, 28),), (), {"axis": 1}, numbers=((32, 32, 32),), outputs=3),
    "add with broadcast": Operator("Add", ((1, 96, 56, 56), (1, 96, 1, 1))),
    "tanh": Operator("Tanh", ((1, 256, 28, 28),)),
    "sigmoid": Operator("Sigmoid", ((1, 4096),)),
    "hard swish": Operator("HardSwish", ((1, 96, 56, 56),)),
    "exp": Operator("Exp", ((1, 128, 500),)),
    "logarithm": Operator("Log", ((1, 128, 500),)),
    "softplus": Operator("Softplus", ((1, 128, 500),)),
    "sine": Operator("Sin", ((1, 128, 500),)),
    "inverse tangent": Operator("Atan", ((1, 128, 500),)),
    "round": Operator("Round", ((1, 128, 500),)),
    "conv 3x3, run-time weights": Operator("Conv", ((1, 32, 28, 28), (32, 32, 3, 3)), (), {"pads": [1] * 4}),
    "transposed conv 4x4/2, run-time weights": Operator(
        "ConvTranspose", ((1, 64, 14, 14), (64, 32, 4, 4)), (), {"pads": [1] * 4, "strides": [2, 2]}
    ),
    "transposed conv 4x4/2, groups 4": Operator(
        "ConvTranspose", ((1, 64, 14, 14),), ((64, 8, 4, 4), (32,)), {"pads": [1] * 4, "strides": [2, 2], "group": 4}
    ),
    "1x1 groups 8, 3x3 pixels": _conv(256, 3, 256, 1, groups=8),
    "conv 3x3 51 channels": _conv(51, 28, 51, 3),
    "conv 3d 3x3x3": Operator("Conv", ((1, 16, 8, 28, 28),), ((32, 16, 3, 3, 3), (32,)), {"pads": [1] * 6}),
    "transposed conv 3d 4x4x4/2": Operator(
        "ConvTranspose", ((1, 16, 8, 14, 14),), ((16, 8, 4, 4, 4), (8,)), {"pads": [1] * 6, "strides": [2, 2, 2]}
    ),
    "max pool 3d": Operator(
        "MaxPool", ((1, 32, 8, 28, 28),), (), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}
    ),
    "average pool 3d": Operator(
        "AveragePool", ((1, 32, 8, 28, 28),), (), {"kernel_shape": [3, 3, 3], "pads": [1] * 6, "count_include_pad": 1}
    ),
    "group norm": Operator("InstanceNormalization", ((1, 8, 4 * 56 * 56),), ((8,), (8,))),
    "sum of all": Operator("ReduceSum", ((1, 512 * 1024),), (), {"keepdims": 0}),
    "largest of all": Operator("ReduceMax", ((64, 2048),), (), {"keepdims": 0}),
    "two tensors, their mean": Operator("Mean", ((1, 64, 56, 56), (1, 64, 56, 56))),
    "boxes, two samples": _boxes(2),
    "boxes, adaptive": _boxes(0),
    "mean of few rows": Operator("ReduceMean", ((2, 300_000),), (), {"axes": [1], "keepdims": 0}),
    "transpose of a matrix": Operator("Transpose", ((1024, 768),), (), {"perm": [1, 0]}),
    "transpose to channels first": Operator("Transpose", ((1, 28, 28, 64),), (), {"perm": [0, 3, 1, 2]}),
}  # fmt: skip
