"""Python floats of a model that Dynamo takes for open: each value is compiled by itself.

With `dynamic=True`, or once it has seen another value, Dynamo makes of a float (the momentum of a BatchNorm, a slope) a
tensor of one number, which the graph reads by `item()`. Tracing cannot go through that, since it has no data.
"""

from collections.abc import Sequence

import torch


def float_inputs(graph_module: torch.fx.GraphModule) -> tuple[int, ...]:
    """Which inputs are such tensors: all that becomes of them is a number."""
    inputs = graph_module.graph.find_nodes(op="placeholder")
    return tuple(
        number
        for number, node in enumerate(inputs)
        if node.users and all(user.op == "call_method" and user.target == "item" for user in node.users)
    )


def with_numbers(
    graph_module: torch.fx.GraphModule, inputs: Sequence[int], numbers: Sequence[float]
) -> torch.fx.GraphModule:
    """The graph with constants in the place of what it reads; its inputs stay, and it shares its weights.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
    inputs : sequence of int
        As `float_inputs` finds them.
    numbers : sequence of float
        The value of each.
    """
    if not inputs:
        return graph_module
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(graph_module.graph, {}))
    placeholders = graph.find_nodes(op="placeholder")
    for number, value in zip(inputs, numbers, strict=True):
        for read in list(placeholders[number].users):
            _put_in_place(read, value)
            graph.erase_node(read)
    return torch.fx.GraphModule(graph_module, graph)


def _put_in_place(read: torch.fx.Node, value: float) -> None:
    """Give those that use a node its value."""
    for user in list(read.users):
        user.args = torch.fx.map_arg(user.args, lambda node: value if node is read else node)
        user.kwargs = torch.fx.map_arg(user.kwargs, lambda node: value if node is read else node)
