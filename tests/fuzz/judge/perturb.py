"""How far results move when every inexact step is off by some roundings."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..generate.builder import words

EXACT = frozenset(
    words(
        "Abs Neg Relu Identity Max Min Clip Ceil Floor Round Sign Not And Or Xor Equal Greater GreaterOrEqual "
        "Less LessOrEqual IsNaN IsInf Where Cast CastLike Reshape Flatten Squeeze Unsqueeze Transpose Expand "
        "Tile Concat Split Slice Pad Trilu Shape Size ConstantOfShape Range EyeLike ReverseSequence Gather "
        "GatherElements GatherND OneHot Compress NonZero Unique TopK MaxPool GlobalMaxPool ReduceMax "
        "ReduceMin ArgMax ArgMin DepthToSpace SpaceToDepth Dropout MaxUnpool Hardmax CenterCropPad BitShift "
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot TensorScatter MaxRoiPool Constant "
    )
)
"""What comes out has been put in, or is decided by a comparison."""
INNER = frozenset(
    words(
        "LayerNormalization InstanceNormalization GroupNormalization RMSNormalization BatchNormalization "
        "LpNormalization MeanVarianceNormalization QuantizeLinear DynamicQuantizeLinear QLinearConv "
        "QLinearMatMul GridSample RoiAlign Resize Mod ReduceLogSum ReduceLogSumExp Det "
    )
)
"""Rounding in the middle of these shows as if their inputs were a little different."""
_EPS = {"float64": 2e-15, "float32": 1e-6, "float16": 2e-3}
ELEMENTWISE = EXACT | frozenset(
    words(
        "Acos Acosh Add Asin Asinh Atan Atanh Cos Cosh Div Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu "
        "Log Mish Mul PRelu Pow Reciprocal Selu Shrink Sigmoid Sin Sinh Softplus Softsign Sqrt Sub Swish Tan "
        "Tanh ThresholdedRelu Celu Mod "
    )
)
"""An error of these is relative to what comes out."""


def perturbed(model: onnx.ModelProto, values: dict[str, np.ndarray], seed: int) -> onnx.ModelProto:
    """Make a model in which each inexact node of the main graph is off by some roundings.

    Parameters
    ----------
    model : onnx.ModelProto
    values : mapping of str to array
        What each tensor was.
    seed : int
    """
    draw = np.random.default_rng(seed)
    moved = onnx.ModelProto()
    moved.CopyFrom(model)
    graph = moved.graph
    nodes = list(graph.node)
    del graph.node[:]

    def shake(name: str, new: str) -> None:
        """Append nodes that make `new` of `name`, with noise."""
        array = np.asarray(values[name])
        eps = _EPS[str(array.dtype)]
        finite = np.abs(array[np.isfinite(array)]).astype("float64")
        noise = draw.choice([-1.0, 1.0], array.shape)
        factor = (1 + eps * noise).astype(array.dtype)
        offset = (0.1 * eps * (finite.max() if finite.size else 0) * draw.choice([-1.0, 1.0], array.shape)).astype(
            array.dtype
        )
        graph.initializer.append(numpy_helper.from_array(factor, new + "/factor"))
        graph.initializer.append(numpy_helper.from_array(offset, new + "/offset"))
        source = name if name != new else new + "/exact"
        graph.node.append(helper.make_node("Mul", [source, new + "/factor"], [new + "/scaled"]))
        graph.node.append(helper.make_node("Add", [new + "/scaled", new + "/offset"], [new]))

    def shakes(name: str) -> bool:
        # A sequence is put together of tensors that were shaken.
        return name in values and not isinstance(values[name], list) and str(np.asarray(values[name]).dtype) in _EPS

    for i, node in enumerate(nodes):
        if node.op_type in INNER:
            for j, name in enumerate(node.input):
                if shakes(name):
                    shake(name, f"{name}/for{i}_{j}")
                    node.input[j] = f"{name}/for{i}_{j}"
        results = [o for o in node.output if node.op_type not in EXACT and shakes(o)]
        for j, name in enumerate(node.output):
            node.output[j] = name + "/exact" if name in results else name
        graph.node.append(node)
        for name in results:
            shake(name, name)
    return moved
