"""Subgraphs of an ONNX node: list them, rename in them, put one in the place of its node."""

from collections.abc import Iterator, Mapping

import onnx


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among the attributes of `node`: the branches of an If, the body of a Loop."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and those of the subgraphs that they hold."""
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from all_nodes(inner)


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
    defined = [tensor.name for tensor in branch.initializer]
    defined += [name for inner in branch.node for name in inner.output if name]
    names = {name: prefix + name for name in defined}
    nodes, tensors = [], []
    for tensor in branch.initializer:
        tensors.append(onnx.TensorProto())
        tensors[-1].CopyFrom(tensor)
        tensors[-1].name = names[tensor.name]
    for inner in branch.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        rename_inputs(copy, names)
        for i, name in enumerate(copy.output):
            copy.output[i] = names.get(name, name)
        nodes.append(copy)
    for value, output in zip(branch.output, node.output, strict=False):
        if output:
            nodes.append(onnx.helper.make_node("Identity", [names.get(value.name, value.name)], [output]))
    return nodes, tensors
