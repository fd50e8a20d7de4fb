"""Subgraphs of an ONNX node: list them, rename in them, put one in the place of its node."""

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import count

import onnx


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the attributes of `node`: the branches of an If, the body of a Loop."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph, and the graphs that its nodes hold."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from all_graphs(inner)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and those of the subgraphs that they hold."""
    return (node for each in all_graphs(graph) for node in each.node)


def identities(nodes: Iterable[onnx.NodeProto]) -> dict[str, str]:
    """Of each result of an Identity the value that it is another name of."""
    same: dict[str, str] = {}
    for node in nodes:
        if node.op_type == "Identity":
            same[node.output[0]] = same.get(node.input[0], node.input[0])
    return same


def rename_inputs(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename what `node` and its subgraphs read, in place.

    Parameters
    ----------
    node : onnx.NodeProto
    names : mapping of str to str
        New names by old ones; others stay. A name is defined once in a model, so nothing is shadowed.
    """
    if not names:
        return
    for i, name in enumerate(node.input):
        if name in names:
            node.input[i] = names[name]
    for graph in subgraphs(node):
        for inner in graph.node:
            rename_inputs(inner, names)
        for value in graph.output:
            value.name = names.get(value.name, value.name)


def make_names_unique(graph: onnx.GraphProto) -> None:
    """Give values of subgraphs other names where they have those of a graph around them, in place.

    ONNX wants names that are defined once, as `rename_inputs` does; ONNX Runtime takes the innermost value of a name.

    Parameters
    ----------
    graph : onnx.GraphProto
        Of a model.
    """
    _rename_hidden(graph, frozenset(), count())


def _rename_hidden(graph: onnx.GraphProto, outer: Set[str], numbers: Iterator[int]) -> None:
    """Rename what hides an outer value; first in the subgraphs, so that nothing hides what is renamed here."""
    own = _defined(graph)
    visible = outer | own
    for node in graph.node:
        for inner in subgraphs(node):
            _rename_hidden(inner, visible, numbers)
    names = {name: f"{name}/:inner{next(numbers)}/" for name in sorted(own & outer)}
    if not names:
        return
    for node in graph.node:
        rename_inputs(node, names)
        for index, name in enumerate(node.output):
            node.output[index] = names.get(name, name)
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = names.get(value.name, value.name)


def _defined(graph: onnx.GraphProto) -> set[str]:
    """The names of what a graph is given, has and computes."""
    given = {value.name for value in (*graph.input, *graph.initializer)}
    return given | {name for node in graph.node for name in node.output if name}


def inline_branch(
    node: onnx.NodeProto, branch: onnx.GraphProto, prefix: str
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Return the nodes and constants that stand for an If whose condition is known.

    Parameters
    ----------
    node : onnx.NodeProto
        The If.
    branch : onnx.GraphProto
        The branch that it takes.
    prefix : str
        Put before the names that the branch defines, so that they stay unique.

    Returns
    -------
    nodes : list of onnx.NodeProto
        Copies, in order; the last ones are Identity nodes that give the results the names of the If's outputs.
    tensors : list of onnx.TensorProto
        The branch's own constants.
    """
    tensors = [copy_tensor(tensor, prefix + tensor.name) for tensor in branch.initializer]
    names = {old.name: new.name for old, new in zip(branch.initializer, tensors, strict=True)}
    nodes, results = copy_nodes(branch, prefix, names)
    for result, output in zip(results, node.output, strict=False):
        if output:
            nodes.append(onnx.helper.make_node("Identity", [result], [output]))
    return nodes, tensors


def copy_tensor(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto:
    """A constant under another name."""
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def copy_nodes(graph: onnx.GraphProto, prefix: str, names: Mapping[str, str]) -> tuple[list[onnx.NodeProto], list[str]]:
    """Copy the nodes of a graph so that they can stand in another one.

    Parameters
    ----------
    graph : onnx.GraphProto
    prefix : str
        Put before the names of what nodes compute, so that they stay unique.
    names : mapping of str to str
        New names of the graph's inputs and constants.

    Returns
    -------
    nodes : list of onnx.NodeProto
    results : list of str
        The new names of the graph's outputs.
    """
    renamed = dict(names) | {name: prefix + name for node in graph.node for name in node.output if name}
    nodes = []
    for node in graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        rename_inputs(copy, renamed)
        for i, name in enumerate(copy.output):
            copy.output[i] = renamed.get(name, name)
        nodes.append(copy)
    return nodes, [renamed.get(value.name, value.name) for value in graph.output]
