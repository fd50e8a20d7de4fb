"""Operators that ONNX itself defines by others, where TVM's frontend lacks them or has them only in a simpler form."""

from collections.abc import Callable
from typing import Any

import onnx
import onnx.inliner
from onnx import TensorProto, helper

from ..check.operators import has_converter
from ..emit import Constants, Emitter, NodeView, Types, replace_nodes
from ..inline import copy_nodes
from ..read import default_opset

_LOCAL = "tvm_rammer.expanded"
_FLAGS = ("periodic",)
"""Attributes that are true where they are not 0: definitions compute with 0 and 1."""


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
    # onnx's stubs leave out what definitions say of functions.
    known: Any = schema
    return schema if known.has_function or known.has_context_dependent_function else None


def _expanded(view: NodeView, schema: onnx.defs.OpSchema, model: onnx.ModelProto, emit: Emitter) -> Emitter | None:
    """The nodes of the body; None where onnx's inliner cannot tell them for these types."""
    node = onnx.NodeProto()
    node.CopyFrom(view.node)
    for attribute in node.attribute:
        if attribute.name in _FLAGS:
            attribute.i = int(attribute.i != 0)
    given = {a.name for a in node.attribute}
    # Neither the definitions nor onnx's inliner know of defaults.
    defaults = (a.default_value for name, a in schema.attributes.items() if name not in given)
    node.attribute.extend(a for a in defaults if a.type != onnx.AttributeProto.UNDEFINED)
    kinds = {name: onnx.TypeProto(tensor_type=view.types[name]) for name in node.input if name}
    function = _definition(schema, node, [kinds.get(name, onnx.TypeProto()) for name in node.input], emit.opset)
    if function is None or any(n.op_type == node.op_type and n.domain == node.domain for n in function.node):
        return None
    function.domain = node.domain = _LOCAL
    function.name = node.op_type
    del function.opset_import[:]  # the inliner skips functions of other versions
    function.opset_import.extend(model.opset_import)
    values = [onnx.ValueInfoProto(name=name, type=kind) for name, kind in kinds.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "alone", values, results)
    imports = [*model.opset_import, helper.make_opsetid(_LOCAL, 1)]
    alone = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=10)
    try:
        body = onnx.inliner.inline_local_functions(alone).graph
    except Exception:  # what cannot be expanded is reported as unsupported
        return None
    names = {name: name for name in node.input if name}
    nodes, made = copy_nodes(body, emit.prefix, names)
    emit.nodes += nodes
    for name, result in zip((value.name for value in results), made, strict=True):
        emit.name(result, name)
    return emit


def _definition(
    schema: Any, node: onnx.NodeProto, kinds: list[onnx.TypeProto], opset: int
) -> onnx.FunctionProto | None:
    """The function of an operator for the types of its inputs."""
    if schema.has_context_dependent_function:
        known = [v for v in schema.context_dependent_function_opset_versions if v <= opset]
        if not known:
            return None
        texts = [kind.SerializeToString() for kind in kinds]
        text = schema.get_context_dependent_function_with_opset_version(max(known), node.SerializeToString(), texts)
    else:
        known = [v for v in schema.function_opset_versions if v <= opset]
        if not known:
            return None
        text = schema.get_function_with_opset_version(max(known))
    return onnx.FunctionProto.FromString(text) if text else None


def _expands(node: NodeView) -> bool:
    form = _MISREAD.get(node.node.op_type) if node.node.domain in ("", "ai.onnx") else None
    return form is not None and form(node)


def _always(_: NodeView) -> bool:
    return True


def _whole(node: NodeView) -> bool:
    """Whether all axes are normalised together."""
    dims = node.dims(0)
    return dims is None or node.attribute("axis", -1) in (0, -len(dims))


def _not_float32(node: NodeView) -> bool:
    """Whether constants of TVM's frontend have another type than the numbers."""
    kind = node.types.get(node.input(0))
    return kind is not None and kind.elem_type != TensorProto.FLOAT


def _double(node: NodeView) -> bool:
    """Whether numbers are more exact than ONNX's constants, which are of float32 by definition."""
    kind = node.types.get(node.input(0))
    return kind is not None and kind.elem_type == TensorProto.DOUBLE


_MISREAD: dict[str, Callable[[NodeView], bool]] = {
    "Attention": _always,  # TVM's converter of that name is Microsoft's, another operator
    "DynamicQuantizeLinear": _always,
    "Elu": _not_float32,
    "Gelu": _double,
    "RMSNormalization": _whole,
    "Selu": _not_float32,
}
"""Forms of operators that TVM's frontend has, and misreads."""
