"""Operators that ONNX itself defines by others, where TVM's frontend lacks them or has them only in a simpler form."""

from collections.abc import Callable

import onnx
import onnx.inliner
from onnx import TensorProto, helper

from ..emit import Constants, Emitter, NodeView, Types, replace_nodes
from ..importer import has_converter
from ..inline import copy_nodes
from ..read import default_opset

_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def expand_functions(model: onnx.ModelProto) -> bool:
    """Put the bodies of ONNX's functions into the place of nodes that TVM's frontend would not import right, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded.

    Returns
    -------
    bool
        Whether there were any.
    """
    versions = {
        o.domain.removeprefix("ai.onnx") if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import
    }
    versions.setdefault("", 1)

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        view = NodeView(node, constants, types)
        domain = "" if node.domain == "ai.onnx" else node.domain
        if domain not in versions or not (_expands(view) or not has_converter(node)):
            return None
        schema = _schema(node.op_type, versions[domain], domain)
        if schema is None or any(name and name not in types for name in node.input):
            return None
        return _expanded(view, schema, model, Emitter(node, default_opset(model), how="expanded"))

    return replace_nodes(model, replacement)


def _schema(op: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """The definition of an operator; None for one that is not defined by others."""
    if not onnx.defs.has(op, domain):
        return None
    try:
        schema = onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _expanded(view: NodeView, schema: onnx.defs.OpSchema, model: onnx.ModelProto, emit: Emitter) -> Emitter | None:
    """The nodes of the body; None where onnx's inliner cannot tell them for these types."""
    node = onnx.NodeProto()
    node.CopyFrom(view.node)
    given = {a.name for a in node.attribute}
    # onnx's inliner takes defaults for missing.
    defaults = (a.default_value for name, a in schema.attributes.items() if name not in given)
    node.attribute.extend(a for a in defaults if a.type != onnx.AttributeProto.UNDEFINED)
    values = [
        onnx.ValueInfoProto(name=name, type=onnx.TypeProto(tensor_type=view.types[name]))
        for name in dict.fromkeys(node.input)
        if name
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    alone = helper.make_model(
        helper.make_graph([node], "alone", values, results), opset_imports=model.opset_import, ir_version=10
    )
    try:
        body = onnx.inliner.inline_selected_functions(
            alone, [(node.domain, node.op_type)], inline_schema_functions=True
        ).graph
    except Exception:  # what cannot be expanded is reported as unsupported
        return None
    if any(n.op_type == node.op_type and n.domain == node.domain for n in body.node):
        return None
    names = {name: name for name in node.input}
    nodes, made = copy_nodes(body, emit.prefix, names)
    emit.nodes += nodes
    for name, result in zip((value.name for value in results), made, strict=True):
        emit.name(result, name)
    return emit


def _expands(node: NodeView) -> bool:
    form = _MISREAD.get(node.node.op_type) if node.node.domain in ("", "ai.onnx") else None
    return form is not None and form(node)


def _always(_: NodeView) -> bool:
    return True


def _more_results(node: NodeView) -> bool:
    return any(node.node.output[1:])


def _narrow(node: NodeView) -> bool:
    kind = node.types.get(node.input(0))
    return kind is not None and kind.elem_type in _NARROW


_MISREAD: dict[str, Callable[[NodeView], bool]] = {
    "Attention": _always,  # TVM's converter of that name is Microsoft's, another operator
    "DynamicQuantizeLinear": _always,
    "Elu": _narrow,
    "GroupNormalization": _always,
    "LayerNormalization": _more_results,
    "RMSNormalization": _always,
    "Swish": _always,
}
"""Forms of operators that TVM's frontend has, and misreads."""
