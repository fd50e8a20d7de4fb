"""Slices, as onnx's shape inference may be asked about them: of an axis of less than no elements it ends the process.

Such an axis comes of a window that is larger than its image, of pads that take away more than there is, or of what a
file says.
"""

import atexit
from collections.abc import Callable
from functools import cache

import onnx
from onnx import defs, helper

from ..inline import all_graphs

_DOMAIN = "tvm_rammer"
_KIND = "RammerSlice"
"""Other readers of ONNX want each operator to have a name of its own, whatever its domain."""
_VERSIONS = (1, 10, 11, 13)
_OF_SIZES = frozenset("Add Cast Concat Constant Div Gather Identity Mul Slice Squeeze Sub Unsqueeze".split())  # noqa: SIM905
"""Operators by which sizes are computed of sizes: none of them has an axis of less than no elements."""


def shield_slices(model: onnx.ModelProto, opset: int) -> None:
    """Let onnx ask this package about a model's slices, in place; not about those of sizes, whose values it follows.

    Parameters
    ----------
    model : onnx.ModelProto
        To be inferred, and nothing else.
    opset : int
        Of ONNX's own operators.
    """
    found = False
    for graph in all_graphs(model.graph):
        sizes = {tensor.name for tensor in graph.initializer}
        for node in graph.node:
            known = node.domain in ("", "ai.onnx")
            of_sizes = node.op_type in _OF_SIZES and all(name in sizes for name in node.input if name)
            if known and (of_sizes or node.op_type in ("Shape", "Size")):
                sizes.update(node.output)
            elif known and node.op_type == "Slice":
                node.domain, node.op_type, found = _DOMAIN, _KIND, True
    if found:
        _register()
        model.opset_import.append(helper.make_opsetid(_DOMAIN, max(1, opset)))


@cache
def _register() -> None:
    """Tell onnx of slices of this package's; until Python ends, since it calls back."""
    for version in _VERSIONS:
        own = defs.get_schema("Slice", version)
        constraints = [(c.type_param_str, c.allowed_type_strs, c.description) for c in own.type_constraints]
        schema = defs.OpSchema(
            _KIND, _DOMAIN, version, inputs=own.inputs, outputs=own.outputs, type_constraints=constraints
        )
        schema.set_type_and_shape_inference_function(_careful(own.get_type_and_shape_inference_function()))
        defs.register_schema(schema)
        atexit.register(defs.deregister_schema, _KIND, version, _DOMAIN)


def _careful(
    infer: Callable[[onnx.shape_inference.InferenceContext], None],
) -> Callable[[onnx.shape_inference.InferenceContext], None]:
    """An inference that knows nothing where onnx's would end the process, or where it fails."""

    def inferred(context: onnx.shape_inference.InferenceContext) -> None:
        given = context.get_input_type(0)
        if given is None or has_impossible(given):
            return
        try:
            infer(context)
        except onnx.shape_inference.InferenceError:
            return  # as onnx itself does: the type of the result stays unknown

    return inferred


def has_impossible(kind: onnx.TypeProto) -> bool:
    """Whether a type says that an axis has less than no elements."""
    return any(dim.HasField("dim_value") and dim.dim_value < 0 for dim in kind.tensor_type.shape.dim)
