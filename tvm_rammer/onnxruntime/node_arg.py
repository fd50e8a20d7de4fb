"""ONNX Runtime's `NodeArg`: what a session says of a model's inputs and outputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..open_shapes.module import SymbolicModule
from ..open_shapes.signature import Declared, Signature
from ..runtime.module import RammerModule
from ..runtime.tensors import TensorSpec
from .values import type_name


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output, as `onnxruntime.NodeArg`.

    Parameters
    ----------
    name : str
    type : str
        Such as `tensor(float)`.
    shape : list
        An integer, the name of a symbolic dimension, or None for each dimension.
    """

    name: str
    type: str
    shape: list[int | str | None]


def inputs_of(module: RammerModule | SymbolicModule) -> list[NodeArg]:
    """The inputs, in the model's order."""
    if not isinstance(module, SymbolicModule):
        return [_arg(spec) for spec in module.inputs]
    extents = module.shapes.extents()
    return [_declared(d, _named(d.shape, extents[d.name])) for d in module.signature.inputs]


def has_open_outputs(module: RammerModule | SymbolicModule) -> bool:
    """Whether only the data say a size of a result of a module that was compiled."""
    return not isinstance(module, SymbolicModule) and any(-1 in spec.shape for spec in module.outputs)


def outputs_of(module: RammerModule | SymbolicModule, signature: Callable[[], Signature | None]) -> list[NodeArg]:
    """The outputs, in the model's order.

    Parameters
    ----------
    module : RammerModule or SymbolicModule
    signature : callable
        What the model's file declares; asked for where only the data say sizes of a result.
    """
    if isinstance(module, SymbolicModule):
        return [_declared(d, d.shape) for d in module.signature.outputs]
    found = signature() if has_open_outputs(module) else None
    shapes = {declared.name: declared.shape for declared in found.outputs} if found else {}
    return [_arg(spec, shapes.get(spec.name)) for spec in module.outputs]


def _arg(spec: TensorSpec, declared: Sequence[int | str | None] | None = None) -> NodeArg:
    if declared is None or len(declared) != len(spec.shape):
        declared = [None] * len(spec.shape)
    shape = [own if own >= 0 else said for own, said in zip(spec.shape, declared, strict=True)]
    return NodeArg(spec.name, type_name(spec.dtype), shape)


def _named(declared: Sequence[int | str | None] | None, extents: Sequence[int | str]) -> list[int | str | None] | None:
    """The extents of an input that has a shape; a size without a name has none here, either."""
    if declared is None:
        return None
    pairs = zip(declared, extents, strict=True)
    return [None if said is None and isinstance(extent, str) else extent for said, extent in pairs]


def _declared(declared: Declared, shape: Sequence[int | str | None] | None) -> NodeArg:
    return NodeArg(declared.name, type_name(declared.dtype), list(shape or ()))
