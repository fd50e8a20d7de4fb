"""An If as a module: both branches imported, and a function that chooses."""

import tvm

from ....errors import UnsupportedOperatorError
from ...bindings import dtype_of, static_shape, tensor_fields
from .functions import choose
from .part import BOOL, Part, free_names


def branches(part: Part) -> tvm.IRModule:
    """Import both branches of an If.

    Raises
    ------
    UnsupportedOperatorError
        They return other types or shapes, or what they read has no static shape.
    ModelError
        One of them cannot be imported.
    """
    both = [part.graph(name) for name in ("then_branch", "else_branch")]
    read = part.variables(name for graph in both for name in free_names(graph))
    then, other = (part.load(part.model_of(graph, read)) for graph in both)
    if (taken := _results(then)) != (left := _results(other)):
        raise UnsupportedOperatorError(
            f"the branches of {part.text} return {taken} and {left}: what depends on data cannot have a static shape; "
            f"make them alike, or make its condition a constant (tvm_rammer.fix_inputs)"
        )
    part.inputs = [part.scalar(part.node.input[0], BOOL), *read]
    return choose(then, other)


def _results(mod: tvm.IRModule) -> str:
    """What the "main" of a module returns."""
    fields = tensor_fields(mod["main"].ret_ty) or []
    shapes = [static_shape(field) for field in fields]
    return ", ".join(
        f"{dtype_of(field)}{'[?]' if shape is None else list(shape)}"
        for field, shape in zip(fields, shapes, strict=True)
    )
