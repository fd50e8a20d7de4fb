"""onnx's shape inference, asked in a way that it survives.

It follows the values of what may be sizes through some operators (`_FOLLOWED`), element by element: of a long vector
that takes a kilobyte for each. And of a Slice of an axis with less than no elements it ends the process. Such an axis
comes of a window that is larger than its image, of pads that take away more than there is, or of what a file says.
"""

import atexit
from collections.abc import Callable, Collection
from functools import cache

import onnx
from onnx import defs, helper

from ....serial import serial
from ..inline import all_graphs
from ..read import SMALL_ELEMENTS, elements

_DOMAIN = "tvm_rammer"
_FOLLOWED = frozenset(["Add", "Cast", "Concat", "Gather", "Mul", "Slice", "Squeeze", "Sub", "Unsqueeze"])


def shield(model: onnx.ModelProto, opset: int) -> None:
    """Let onnx follow nothing but sizes, in place: it asks this package about the same operators of anything else.

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
            if node.domain not in ("", "ai.onnx"):
                continue
            if _makes_sizes(node, sizes):
                sizes.update(node.output)
            elif node.op_type in _FOLLOWED:
                node.domain, node.op_type, found = _DOMAIN, _name(node.op_type), True
    if found:
        _register()
        model.opset_import.append(helper.make_opsetid(_DOMAIN, max(1, opset)))


def _makes_sizes(node: onnx.NodeProto, sizes: Collection[str]) -> bool:
    """Whether the results of a node are sizes, or made of these and of few numbers alone."""
    if node.op_type == "Constant":
        return all(elements(attribute.t.dims) <= SMALL_ELEMENTS for attribute in node.attribute)
    return node.op_type in ("Shape", "Size") or (
        node.op_type in _FOLLOWED and all(name in sizes for name in node.input if name)
    )


def _name(kind: str) -> str:
    """A name of its own: other readers of ONNX want each operator to have one, whatever its domain."""
    return f"Rammer{kind}"


@serial
@cache
def _register() -> None:
    """Tell onnx of the operators of this package; until Python ends, since it calls back."""
    for own in defs.get_all_schemas_with_history():
        if own.domain == "" and own.name in _FOLLOWED:
            constraints = [(c.type_param_str, c.allowed_type_strs, c.description) for c in own.type_constraints]
            name, since = _name(own.name), own.since_version
            schema = defs.OpSchema(
                name, _DOMAIN, since, inputs=own.inputs, outputs=own.outputs, type_constraints=constraints
            )
            schema.set_type_and_shape_inference_function(_careful(own.get_type_and_shape_inference_function()))
            defs.register_schema(schema)
            atexit.register(defs.deregister_schema, name, since, _DOMAIN)


def _careful(
    infer: Callable[[onnx.shape_inference.InferenceContext], None],
) -> Callable[[onnx.shape_inference.InferenceContext], None]:
    """An inference that knows nothing where onnx's would end the process, or where it fails."""

    def inferred(context: onnx.shape_inference.InferenceContext) -> None:
        given = context.get_input_type(0)
        if given is not None and has_impossible(given):
            return
        try:
            infer(context)
        except onnx.shape_inference.InferenceError:
            return  # as onnx itself does: the type of the result stays unknown

    return inferred


def has_impossible(kind: onnx.TypeProto) -> bool:
    """Whether a type says that an axis has less than no elements."""
    return any(dim.HasField("dim_value") and dim.dim_value < 0 for dim in kind.tensor_type.shape.dim)
