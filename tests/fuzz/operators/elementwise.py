"""Operators that work element by element, with broadcasting."""

import numpy as np

from ..generate.builder import DTYPES, FLOATS, Builder, onnx_type, words

UNARY = words(
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Identity IsNaN Log Mish Neg Not "
    "Reciprocal Relu Round Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh BitwiseNot"
)
BINARY = words(
    "Add Sub Mul Div Pow Mod And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitShift BitwiseAnd "
    "BitwiseOr BitwiseXor PRelu"
)
VARIADIC = ("Max", "Min", "Sum", "Mean")
PARAMETERS = {
    "Celu": {"alpha": (0.1, 3)},
    "Elu": {"alpha": (-1, 3)},
    "HardSigmoid": {"alpha": (0, 1), "beta": (-1, 1)},
    "LeakyRelu": {"alpha": (-1, 1)},
    "Selu": {"alpha": (0, 2), "gamma": (0, 2)},
    "ThresholdedRelu": {"alpha": (-1, 1)},
    "Shrink": {"bias": (0, 1), "lambd": (-1, 1)},
    "Swish": {"alpha": (-1, 2)},
}


def unary(op):
    def make(b: Builder):
        return b.add(op, [b.source(b.types(op))])

    return make


def with_parameters(op):
    def make(b: Builder):
        given = {k: round(b.rng.uniform(*ends), 3) for k, ends in PARAMETERS[op].items() if b.chance(0.7)}
        return b.add(op, [b.source(b.types(op))], **given)

    return make


def partner(b: Builder, shape, dtype, low=-3.0, high=3.0):
    """A tensor of a type that broadcasts with a shape, or to a larger one."""
    same = [n for n, v in b.values.items() if v.shape == shape and v.dtype == dtype and n not in b.constants]
    if same and low == -3.0 and b.chance(0.5):
        return b.pick(same)
    other = [1 if b.chance(0.3) else d for d in shape][b.integer(0, len(shape)) if b.chance(0.5) else 0 :]
    other = [b.integer(1, 4) if d == 1 and b.chance(0.15) else d for d in other]
    if len(other) < 4 and b.chance(0.1):
        other.insert(0, b.integer(1, 3))
    return b.parameter(dtype, other, low, high)


def binary(op):
    def make(b: Builder):
        x = b.source(b.types(op))
        dtype, shape = b.values[x].dtype, b.of(x)
        attributes = {}
        low, high = (1, 4) if op in ("Div", "Mod") and dtype not in FLOATS else (-3.0, 3.0)
        if op == "BitShift":
            attributes, (low, high) = {"direction": b.pick(["LEFT", "RIGHT"])}, (0, 7)
        elif op == "Mod":
            attributes = {"fmod": 1} if dtype in FLOATS or b.chance(0.3) else {}
        elif op == "Pow":
            if b.chance(0.5):
                x = b.add("Abs", [x])[0]
            low, high = (0, 3) if dtype not in FLOATS else (-2, 3)
            if b.opset >= 12 and b.chance(0.3):
                dtype = b.dtype(b.types(op, 1))
        elif op == "PRelu":
            return b.add(op, [x, b.parameter(dtype, [1 if b.chance(0.4) else d for d in shape])])
        y = partner(b, shape, dtype, low, high)
        if op in ("Div", "Mod") and dtype.startswith("int") and b.chance(0.4):
            (y,) = b.add("Neg", [y])
        pair = [y, x] if b.chance(0.3) and low == -3.0 else [x, y]
        return b.add(op, pair, **attributes)

    return make


def variadic(op):
    def make(b: Builder):
        x = b.source(b.types(op))
        dtype, shape = b.values[x].dtype, b.of(x)
        return b.add(op, [x, *(partner(b, shape, dtype) for _ in range(b.integer(0, 3)))])

    return make


def where(b: Builder):
    x = b.source(b.types("Where", 1))
    dtype, shape = b.values[x].dtype, b.of(x)
    return b.add("Where", [partner(b, shape, "bool"), x, partner(b, shape, dtype)])


def clip(b: Builder):
    x = b.source(b.types("Clip"))
    dtype = b.values[x].dtype
    low, high = sorted(b.numbers("int8" if dtype not in FLOATS else "float32", [2], 0, 3).tolist())
    if b.opset < 11:
        return b.add("Clip", [x], min=low if b.chance(0.7) else None, max=high if b.chance(0.7) else None)
    if dtype == "bfloat16":
        return []
    if b.chance(0.1):
        low, high = high, low
    make = b.pick([b.constant, b.constant, b.input])
    ends = [make(np.array(e, dtype)) if b.chance(0.7) else "" for e in (low, high)]
    return b.add("Clip", [x, *ends])


def cast(b: Builder):
    x = b.source(b.types("Cast"))
    if b.values[x].dtype in FLOATS and b.chance(0.5):
        x = b.add("Abs", [x])[0]  # what negative numbers become as unsigned ones is not defined
    if b.opset >= 19 and b.chance(0.2):
        narrow = b.pick([onnx_type(t) for t in ("float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz")])
        (y,) = b.add("Cast", [x], to=narrow, saturate=b.integer(0, 1)) or [""]
        return b.add("Cast", [y], to=onnx_type("float32")) if y else []
    allowed = [d for d in DTYPES if d != "bfloat16" or b.opset >= 13]
    return b.add("Cast", [x], to=onnx_type(b.dtype(allowed)))


def cast_like(b: Builder):
    x = b.source(b.types("CastLike"))
    return b.add("CastLike", [x, b.source(b.types("CastLike", 1))])


def gelu(b: Builder):
    return b.add("Gelu", [b.source(b.types("Gelu"))], approximate=b.pick([None, "none", "tanh"]))


def is_inf(b: Builder):
    x = b.source(b.types("IsInf"))
    big = b.add("Div", [x, b.add("Sub", [x, x])[0]]) if b.chance(0.5) else [x]
    ends = {k: b.integer(0, 1) for k in ("detect_negative", "detect_positive") if b.chance(0.4)}
    return b.add("IsInf", big or [x], **ends)


TABLE = (
    {op: unary(op) for op in UNARY}
    | {op: with_parameters(op) for op in PARAMETERS}
    | {op: binary(op) for op in BINARY}
    | {op: variadic(op) for op in VARIADIC}
    | {"Where": where, "Clip": clip, "Cast": cast, "CastLike": cast_like, "Gelu": gelu, "IsInf": is_inf}
)
