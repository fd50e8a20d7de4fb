"""Operators that work element by element, where TVM's frontend has them for some types or values only."""

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto, helper

from ..emit import FLOATS, HALVES, Emitter, NodeView

INTEGERS = {
    getattr(TensorProto, name)
    for name in "INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split()  # noqa: SIM905
}

BY_ELEMENT = frozenset(
    """Abs Acos Acosh Add And Asin Asinh Atan Atanh BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast Ceil Celu Clip Cos
    Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu
    Less LessOrEqual Log Max Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh
    Softplus Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor""".split()  # noqa: SIM905 (a list of words)
)
"""Operators whose every result is of the elements at its place, by broadcasting where they read several tensors."""


Lowering = Callable[[NodeView, Emitter], Emitter | None]
"""What takes the place of a node; None where it stays."""

_SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""Its alpha and gamma, where they are not given."""


def element(node: NodeView, index: int) -> int:
    """ONNX's element type of an input; 0 where it is not known."""
    tensor = node.constants.get(node.input(index))
    if tensor is not None:
        return tensor.data_type
    kind = node.types.get(node.input(index))
    return kind.elem_type if kind is not None else 0


def numpy_type(elem: int) -> np.dtype:
    """NumPy's type for one of ONNX's."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem))


def in_single(lower: Lowering | None = None) -> Lowering:
    """An operator that of half precision is computed in float32, and rounded once.

    The parts of an activation cancel out; squares and sums are larger than their roots, or lose what they add.

    Parameters
    ----------
    lower : callable, optional
        What becomes of it in other types; it stays, by default.
    """

    def lowered(node: NodeView, emit: Emitter) -> Emitter | None:
        elem = element(node, 0)
        if elem not in HALVES:
            return None if lower is None else lower(node, emit)
        wide = [
            emit("Cast", name, to=TensorProto.FLOAT) if element(node, i) in HALVES else name
            for i, name in enumerate(node.node.input)
        ]
        same = helper.make_node(node.node.op_type, wide, [f"{emit.prefix}wide"], domain=node.node.domain)
        same.attribute.extend(node.node.attribute)
        emit.nodes.append(same)
        emit.last("Cast", same.output[0], outputs=node.node.output, to=elem)
        return emit

    return lowered


def _mod(node: NodeView, emit: Emitter) -> Emitter | None:
    """The remainder of floating-point numbers has the divisor's sign: C's fmod, corrected."""
    elem = element(node, 0)
    if node.attribute("fmod", 0):
        return in_single()(node, emit)  # TVM has none of bfloat16
    if elem in INTEGERS or not elem:
        return None
    x, y = node.input(0), node.input(1)
    zero = emit.constant(np.array(0, numpy_type(elem)))
    rest = emit("Mod", x, y, fmod=1)
    crosses = emit("Xor", emit("Less", rest, zero), emit("Less", y, zero))
    crosses = emit("And", crosses, emit("Not", emit("Equal", rest, zero)))
    emit.name(emit("Where", crosses, emit("Add", rest, y), rest), node.output)
    return emit


def _pow(node: NodeView, emit: Emitter) -> Emitter | None:
    """The result has the base's type; powers of integers are exact."""
    base, exponent = element(node, 0), element(node, 1)
    if not base or not exponent or (base == exponent and base not in INTEGERS):
        return None
    if base not in INTEGERS:
        power = emit("Cast", node.input(1), to=base)
        emit.last("Pow", node.input(0), power, outputs=node.node.output)
    elif exponent not in INTEGERS:
        wide = [emit("Cast", node.input(i), to=TensorProto.DOUBLE) for i in (0, 1)]
        emit.last("Cast", emit("Pow", *wide), outputs=node.node.output, to=base)
    else:
        _integer_power(node, emit, numpy_type(base), base)
    return emit


def _integer_power(node: NodeView, emit: Emitter, dtype: np.dtype, elem: int) -> None:
    """By squaring; of what a negative power makes only ones are no fraction."""
    one, two = (emit.constant(np.array(n, dtype)) for n in (1, 2))
    zero = emit.constant(np.array(0, dtype))
    square, rest = node.input(0), emit("Cast", node.input(1), to=elem)
    power, negative = rest, dtype.kind == "i"
    known = node.array(1)
    bits = max(1, int(np.abs(known).max()).bit_length()) if known is not None and known.size else dtype.itemsize * 8
    result = one
    for bit in range(bits):
        half = emit("Div", emit("Sub", rest, emit("Mod", rest, two)), two)
        odd = emit("Not", emit("Equal", emit("Mod", rest, two), zero))
        result = emit("Where", odd, emit("Mul", result, square), result)
        rest = half
        if bit < bits - 1:
            square = emit("Mul", square, square)
    if negative and (known is None or (known < 0).any()):
        absolute = emit("Abs", node.input(0))
        fraction = emit("And", emit("Less", power, zero), emit("Not", emit("Equal", absolute, one)))
        result = emit("Where", fraction, zero, result)
    emit.name(result, node.output)


def _is_inf(node: NodeView, emit: Emitter) -> Emitter | None:
    positive, negative = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    elem = element(node, 0)
    if not elem or (positive and negative and elem != TensorProto.BFLOAT16):
        return None
    if not positive and not negative:
        dims = node.dims(0)
        if dims is None:
            return None
        emit.name(emit.constant(np.zeros(dims, bool)), node.output)
        return emit
    limit = emit.constant(np.array(np.inf if positive else -np.inf, numpy_type(elem)))
    # TVM's own test knows no bfloat16.
    value = emit("Abs", node.input(0)) if positive and negative else node.input(0)
    emit.name(emit("Equal", value, limit), node.output)
    return emit


def _thresholded_relu(node: NodeView, emit: Emitter) -> Emitter | None:
    """A choice: TVM's frontend multiplies by 0, of which NaN and infinities make NaN."""
    elem = element(node, 0)
    if elem not in FLOATS:
        return None
    zero, alpha = (emit.constant(np.array(n, numpy_type(elem))) for n in (0, node.attribute("alpha", 1.0)))
    emit.name(emit("Where", emit("Less", alpha, node.input(0)), node.input(0), zero), node.output)
    return emit


def _celu(node: NodeView, emit: Emitter) -> Emitter | None:
    """TVM's frontend makes a vector of a number, and adds what it has not chosen, which may be infinite."""
    elem = element(node, 0)
    if elem not in FLOATS:
        return None
    x, alpha = node.input(0), emit.constant(np.array(node.attribute("alpha", 1.0), numpy_type(elem)))
    zero, one = (emit.constant(np.array(n, numpy_type(elem))) for n in (0, 1))
    below = emit("Mul", alpha, emit("Sub", emit("Exp", emit("Div", x, alpha)), one))
    emit.name(emit("Where", emit("Less", x, zero), below, x), node.output)
    return emit


def _elu(node: NodeView, emit: Emitter) -> Emitter | None:
    """TVM's frontend has it, and Selu, of float32 and finite factors alone: it adds what is not chosen times 0."""
    elem, scaled = element(node, 0), node.node.op_type == "Selu"
    alpha = node.attribute("alpha", _SELU[0] if scaled else 1.0)
    if elem not in FLOATS or (elem == TensorProto.FLOAT and math.isfinite(alpha)):
        return None
    half = elem in HALVES  # computed in float32, and rounded once
    dtype = np.dtype(np.float32) if half else numpy_type(elem)
    x = emit("Cast", node.input(0), to=TensorProto.FLOAT) if half else node.input(0)
    zero, one, alpha = (emit.constant(np.array(n, dtype)) for n in (0, 1, alpha))
    value = emit("Where", emit("Less", x, zero), emit("Mul", alpha, emit("Sub", emit("Exp", x), one)), x)
    if scaled:
        gamma = emit.constant(np.array(node.attribute("gamma", _SELU[1]), dtype))
        value = emit("Mul", gamma, value)
    emit.name(emit("Cast", value, to=elem) if half else value, node.output)
    return emit


def _prelu(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of integers, of bfloat16, and of a number without axes: TVM's frontend looks for channels."""
    elem = element(node, 0)
    if not elem or (elem in FLOATS and elem != TensorProto.BFLOAT16 and node.dims(0) != []):
        return None
    x, zero = node.input(0), emit.constant(np.array(0, numpy_type(elem)))
    emit.name(emit("Where", emit("Less", x, zero), emit("Mul", x, node.input(1)), x), node.output)
    return emit


def _clip(node: NodeView, emit: Emitter) -> Emitter | None:
    """Before opset 11 a bound that is not given is finite: infinity is cut off, too."""
    elem = element(node, 0)
    if emit.opset >= 11 or elem not in FLOATS:
        return None
    value, ends = node.input(0), np.finfo(np.float32)
    for kind, name, end in (("Max", "min", ends.min), ("Min", "max", ends.max)):
        with np.errstate(over="ignore"):
            bound = np.array(node.attribute(name, float(end)), numpy_type(elem))
        value = emit(kind, value, emit.constant(bound))
    emit.name(value, node.output)
    return emit


def _shrink(node: NodeView, emit: Emitter) -> Emitter | None:
    """What is both below and above is below; integers are moved by a bias that need not be one, and then cut off."""
    elem = element(node, 0)
    integer = elem in INTEGERS
    if not integer and elem not in FLOATS:
        return None
    x = emit("Cast", node.input(0), to=TensorProto.DOUBLE) if integer else node.input(0)
    limit = node.attribute("lambd", 0.5)
    numbers = (-limit, limit, node.attribute("bias", 0.0), 0.0)
    dtype = np.float64 if integer else numpy_type(elem)
    lowest, highest, bias, zero = (emit.constant(np.array(n, dtype)) for n in numbers)
    value = emit("Where", emit("Less", highest, x), emit("Sub", x, bias), zero)
    value = emit("Where", emit("Less", x, lowest), emit("Add", x, bias), value)
    emit.name(emit("Cast", value, to=elem) if integer else value, node.output)
    return emit


def _sign(node: NodeView, emit: Emitter) -> Emitter | None:
    """Of unsigned integers: TVM compares them with numbers below 0."""
    elem = element(node, 0)
    if elem not in INTEGERS or numpy_type(elem).kind != "u":
        return None
    emit.last("Cast", emit("Cast", node.input(0), to=TensorProto.BOOL), outputs=node.node.output, to=elem)
    return emit


def _bernoulli(node: NodeView, _emit: Emitter) -> Emitter | None:
    node.refuse("draws random numbers", "draw them before, and make them an input")


ELEMENTWISE = {
    ("", "Celu"): in_single(_celu),
    ("", "Clip"): _clip,
    ("", "Elu"): _elu,
    ("", "IsInf"): _is_inf,
    ("", "Mod"): _mod,
    ("", "Pow"): _pow,
    ("", "PRelu"): _prelu,
    ("", "Selu"): _elu,
    ("", "Shrink"): _shrink,
    ("", "Sign"): _sign,
    ("", "ThresholdedRelu"): _thresholded_relu,
    **{("", kind): in_single() for kind in ("HardSigmoid", "HardSwish", "Mish", "Softplus", "Softsign", "Swish")},
    **{
        ("", kind): _bernoulli
        for kind in (
            "Bernoulli",
            "Multinomial",
            "RandomNormal",
            "RandomNormalLike",
            "RandomUniform",
            "RandomUniformLike",
        )
    },
}
"""By domain and name."""
