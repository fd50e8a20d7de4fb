"""Read an ONNX model and check it, so that later steps may trust what it says."""

import os
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from ...arguments import path_of
from ...errors import ModelError, first_line
from ...files import is_saved_model
from .check.file import bound_steps, check_axes, check_equations, check_inputs, check_ranges, check_scans
from .inline import all_graphs, all_nodes, make_names_unique, subgraphs

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""
_OF_ONNXRUNTIME = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1000, "GroupNormalization": 21}
"""Operators that ONNX Runtime has without a domain, and the opset from which on they are ONNX's.

Its optimisers write the first two. GroupNormalization was ONNX's in opset 18, too: another one, which was withdrawn.
"""
_VERSIONS = {MICROSOFT: 1, "ai.onnx.ml": 3}
"""Of domains that files may use without saying which version of them."""
_LOWERED_TO = 21
"""The opset of what takes the place of operators, where a file has none of ONNX's own."""

SMALL_ELEMENTS = 1024
"""Constants of at most so many elements may be a shape: onnx's tools see their values. Weights they do not see."""


_TABLES = ("nodes_", "leaf_", "class_", "target_")
"""How the lists begin that hold trees."""


def read_onnx(model: str | os.PathLike[str] | onnx.ModelProto) -> onnx.ModelProto:
    """Read a model into a ModelProto of our own, which later steps may change.

    Parameters
    ----------
    model : path or onnx.ModelProto
        A file, whose external data lie beside it, or a model, which is copied.

    Returns
    -------
    onnx.ModelProto
        Valid by onnx's own checker, local functions inlined. Nodes come after those whose results they read.

    Raises
    ------
    ModelError
        No such file, no ONNX model, or an invalid one.
    """
    if isinstance(model, onnx.ModelProto):
        proto, what = onnx.ModelProto(), "the ONNX model"
        proto.CopyFrom(model)
    else:
        path = os.fspath(path_of(model, ModelError))
        proto, what = _load(path), repr(path)
    if not proto.graph.node and not proto.graph.output:
        raise ModelError(f"{what} has an empty graph: no node and no output; export the model again")
    if not proto.graph.output:
        raise ModelError(f"{what} has no output; name at least one value of the graph as its output")
    if proto.ir_version < 3:
        raise ModelError(f"{what} has IR version {proto.ir_version}; versions from 3 (ONNX 1.1) on can be read")
    if proto.graph.sparse_initializer:
        name = proto.graph.sparse_initializer[0].values.name
        raise ModelError(f"{what} stores {name!r} as a sparse initializer; export it with dense weights")
    _name_domains(proto)
    make_names_unique(proto.graph)
    _sort(proto.graph)
    try:
        bare = skeleton(proto, tables=False)
        _complete(bare.graph)
        onnx.checker.check_model(bare)
        check_inputs(bare)
        check_ranges(bare)
        if proto.functions:
            _raise_versions(proto)
            proto = onnx.inliner.inline_local_functions(proto)
        check_axes(proto.graph)
        check_equations(proto.graph)
        check_scans(proto.graph)
        bound_steps(proto)
    except Exception as error:
        raise ModelError(f"{what} is not a valid ONNX model: {first_line(error)}; export it again") from error
    return proto


def _raise_versions(model: onnx.ModelProto) -> None:
    """Say of functions for an older opset that they are for the model's, in place, where that means the same.

    onnx's inliner leaves functions for other opsets as they are.
    """
    newest = {o.domain: o.version for o in model.opset_import}
    for function in model.functions:
        inner = [node for outer in function.node for graph in subgraphs(outer) for node in all_nodes(graph)]
        for opset in function.opset_import:
            domain, version = opset.domain, newest.get(opset.domain, opset.version)
            kinds = {node.op_type for node in (*function.node, *inner) if node.domain == domain}
            if all(_unchanged(kind, domain, opset.version, version) for kind in kinds):
                opset.version = version


def _unchanged(kind: str, domain: str, before: int, after: int) -> bool:
    """Whether an operator is the same in two opsets."""
    try:
        since = [onnx.defs.get_schema(kind, version, domain).since_version for version in (before, after)]
    except onnx.defs.SchemaError:  # a function of the model
        return before == after
    return since[0] == since[1]


def _name_domains(model: onnx.ModelProto) -> None:
    """Name domains as ONNX knows them, in place.

    Operators of ONNX Runtime, which it has in ONNX's own domain, go where ONNX knows that it does not know them. That
    domain has a long name, too, which onnx's checker does not know. Files may leave out which version they use of
    `_VERSIONS`.
    """
    of_functions = (part for function in model.functions for part in (*function.opset_import, *function.node))
    for part in (*model.opset_import, *all_nodes(model.graph), *of_functions):
        if part.domain == "ai.onnx":
            part.domain = ""
    named, version = {o.domain for o in model.opset_import}, default_opset(model)
    for node in all_nodes(model.graph):
        if node.domain == "" and version < _OF_ONNXRUNTIME.get(node.op_type, 0):
            node.domain = MICROSOFT
        if node.domain in _VERSIONS and node.domain not in named:
            named.add(node.domain)
            model.opset_import.append(onnx.helper.make_opsetid(node.domain, _VERSIONS[node.domain]))
    if named and "" not in named and all(node.domain != "" for node in all_nodes(model.graph)):
        model.opset_import.append(onnx.helper.make_opsetid("", _LOWERED_TO))


def _sort(graph: onnx.GraphProto) -> None:
    """Put nodes behind those that they read from, in place: ONNX asks for it, ONNX Runtime does of subgraphs alone."""
    makers = {name: i for i, node in enumerate(graph.node) for name in node.output}
    needed = [{makers[name] for name in _read_by(node) if name and name in makers} for node in graph.node]
    if all(max(others, default=-1) < i for i, others in enumerate(needed)):
        return
    try:
        order = list(TopologicalSorter(dict(enumerate(needed))).static_order())
    except CycleError:  # onnx's checker says so
        return
    nodes = [graph.node[i] for i in order]
    del graph.node[:]
    graph.node.extend(nodes)


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """The values that a node reads, also in its subgraphs."""
    yield from node.input
    for graph in subgraphs(node):
        yield from (name for inner in all_nodes(graph) for name in inner.input)
        yield from (value.name for each in all_graphs(graph) for value in each.output)


def _load(path: str) -> onnx.ModelProto:
    if not os.path.isfile(path):
        found = f"{path!r} is a folder" if os.path.isdir(path) else f"there is no model file {path!r}"
        raise ModelError(f"{found}; give the path of an .onnx file")
    if not os.path.getsize(path):
        raise ModelError(f"the model file {path!r} is empty; export the model again")
    try:
        return onnx.load(path, format="protobuf")
    except DecodeError as error:
        if is_saved_model(path):
            raise ModelError(f"{path!r} is compiled already; give the model itself, or tvm_rammer.load it") from error
        raise ModelError(f"{path!r} is not an ONNX model, or it is truncated; export it again") from error
    except Exception as error:
        raise ModelError(f"{path!r} cannot be read: {first_line(error)}; is its external data beside it?") from error


def skeleton(model: onnx.ModelProto, *, tables: bool = True) -> onnx.ModelProto:
    """Copy a model without its weights: each becomes an input of the same type.

    onnx's checker and shape inference work on serialized models: weights would cost seconds, and over
    2 GB an error.

    Parameters
    ----------
    model : onnx.ModelProto
    tables : bool
        Whether nodes keep long lists of trees, on which no shape depends: they may be larger than all else.
    """
    bare = onnx.ModelProto(ir_version=max(model.ir_version, 4))
    bare.opset_import.extend(model.opset_import)
    bare.functions.extend(model.functions)
    graph = model.graph
    bare.graph.name = graph.name or "main"
    bare.graph.node.extend(graph.node if tables else map(_without_tables, graph.node))
    bare.graph.input.extend(graph.input)
    bare.graph.output.extend(graph.output)
    bare.graph.value_info.extend(graph.value_info)
    known = {i.name for i in graph.input}
    for tensor in graph.initializer:
        if elements(tensor.dims) <= SMALL_ELEMENTS:
            bare.graph.initializer.append(tensor)
        elif tensor.name not in known:
            bare.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return bare


def _without_tables(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node of ai.onnx.ml whose long lists of the nodes and leaves of trees are empty."""
    if node.domain != "ai.onnx.ml":
        return node
    long = [len(a.ints) + len(a.floats) + len(a.strings) > SMALL_ELEMENTS for a in node.attribute]
    if not any(long):
        return node
    made = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name)
    made.input.extend(node.input)
    made.output.extend(node.output)
    for given, each in zip(node.attribute, long, strict=True):
        # The checker wants some of them to be there.
        emptied = onnx.AttributeProto(name=given.name, type=given.type)
        made.attribute.append(emptied if each and given.name.startswith(_TABLES) else given)
    return made


def default_opset(model: onnx.ModelProto) -> int:
    """Version of ONNX's own operators in a model."""
    own = (o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    return next(own, onnx.defs.onnx_opset_version() if model.opset_import else 1)


def _complete(graph: onnx.GraphProto) -> None:
    """Add what onnx's checker wants of inputs and outputs, although others do without: shapes, types of outputs."""
    for value in graph.output:
        if value.type.WhichOneof("value") is None:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for value in (*graph.input, *graph.output):
        kind = value.type.tensor_type
        if value.type.WhichOneof("value") == "tensor_type" and not kind.HasField("shape"):
            kind.shape.SetInParent()
    for node in graph.node:
        for inner in subgraphs(node):
            _complete(inner)


def elements(dims: Iterable[int]) -> int:
    """Product of dimensions, as an exact integer."""
    product = 1
    for dim in dims:
        product *= int(dim)
    return product
