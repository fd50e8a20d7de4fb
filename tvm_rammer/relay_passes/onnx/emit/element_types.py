"""ONNX's types of floating-point numbers that can be computed with."""

from onnx import TensorProto

HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, *HALVES)
