"""What a model says of its inputs and outputs: their names, types, and shapes with symbolic dimensions.

Reading it takes the file's graph, not its weights, and no compiler.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir import LOOPS


@dataclass(frozen=True, slots=True)
class Declared:
    """An input or output as the model declares it.

    Parameters
    ----------
    name : str
    dtype : str
    shape : tuple of (int, str or None), or None
        A static size, the name of a symbolic dimension, or None for a size without a name; None for an unknown rank.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape with -1 for what is not static; no extents where the rank is unknown."""
        return tuple(e if isinstance(e, int) else -1 for e in self.shape or ())


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model.

    Parameters
    ----------
    inputs, outputs : tuple of Declared
    one_by_one : str
        Why no module can serve all lengths of a sequence; empty where one may.
    """

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    one_by_one: str = ""


def read_signature(model: Any) -> Signature | None:
    """Read what a model says of its inputs and outputs.

    Parameters
    ----------
    model : path of an .onnx file, onnx.ModelProto or tvm.IRModule

    Returns
    -------
    Signature or None
        None where it cannot be read, or an input is no tensor: whoever compiles the model will say what is wrong.
    """
    kind = type(model).__module__.partition(".")[0]
    try:
        if kind == "tvm":
            return _of_relax(model)
        if isinstance(model, str | os.PathLike) or kind.startswith("onnx"):
            return _of_onnx(model)
    except Exception:  # of readers of files: all that they raise where a file is no model
        return None
    return None


def _of_onnx(model: Any) -> Signature | None:
    import onnx

    proto = model if isinstance(model, onnx.ModelProto) else onnx.load(model, load_external_data=False)
    if not all(value.type.tensor_type.elem_type for value in proto.graph.output):
        # ONNX lets a model leave out the types of its outputs. Inference may end the process where nothing was checked.
        from ..relay_passes.onnx.check.inference import infer_shapes
        from ..relay_passes.onnx.read import default_opset, read_onnx
        from ..relay_passes.onnx.sequences import resolve_sequences

        proto = read_onnx(model)
        proto = infer_shapes(proto, default_opset(proto))
        if resolve_sequences(proto):  # a model that returns one returns its elements
            proto = infer_shapes(proto, default_opset(proto))
    weights = {tensor.name for tensor in proto.graph.initializer}
    names = [value.name for value in proto.graph.input]
    if len(set(names)) < len(names):
        return None  # who reads the model says so
    inputs = [_onnx_value(value) for value in proto.graph.input if value.name not in weights]
    outputs = [_onnx_value(value) for value in proto.graph.output]
    loops = any(n.op_type in LOOPS for graph in (proto.graph, *proto.functions) for n in graph.node)
    return _signature(inputs, outputs, "" if loops else "it has no recurrent layer and no Scan")


def _onnx_value(value: Any) -> Declared | None:
    from onnx import TensorProto, helper

    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or kind.elem_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return None
    dims = tuple(
        # PaddlePaddle calls each dimension "?" that it does not know.
        d.dim_value if d.WhichOneof("value") == "dim_value" and d.dim_value > 0 else d.dim_param.strip("?") or None
        for d in kind.shape.dim
    )
    return Declared(
        value.name, str(helper.tensor_dtype_to_np_dtype(kind.elem_type)), dims if kind.HasField("shape") else None
    )


def _of_relax(mod: Any) -> Signature | None:
    from tvm import relax

    from ..runtime.tensors import output_specs

    main = mod["main"]
    if not all(isinstance(param.ty, relax.TensorType) for param in main.params):
        return None
    inputs = [Declared(p.name, str(p.ty.dtype), _relax_shape(p.ty)) for p in main.params]
    outputs = [Declared(s.name, s.dtype, tuple(e if e >= 0 else None for e in s.shape)) for s in output_specs(mod)]
    return _signature(inputs, outputs, "it is no ONNX model")


def _relax_shape(ty: Any) -> tuple[int | str | None, ...] | None:
    from tvm import relax, tirx

    if not isinstance(ty.shape, relax.ShapeExpr):
        return (None,) * int(ty.ndim) if int(ty.ndim) >= 0 else None

    def extent(dim: Any) -> int | str | None:
        return int(dim) if isinstance(dim, tirx.IntImm) else str(dim.name) if isinstance(dim, tirx.Var) else None

    return tuple(map(extent, ty.shape))


def _signature(
    inputs: Sequence[Declared | None], outputs: Sequence[Declared | None], one_by_one: str
) -> Signature | None:
    if None in inputs or None in outputs:
        return None
    return Signature(tuple(d for d in inputs if d), tuple(d for d in outputs if d), one_by_one)
