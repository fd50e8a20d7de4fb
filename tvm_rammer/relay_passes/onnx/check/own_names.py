"""Names in an error that are those of the file, not of nodes that were put into the place of its own.

Names that are made begin with one of the file's, and go on behind a stroke (`emit.Emitter`).
"""

import re

import onnx

from ..inline import all_graphs


def own_names(model: onnx.ModelProto) -> frozenset[str]:
    """The names of the nodes and values of a model."""
    names: set[str] = set()
    for graph in all_graphs(model.graph):
        names.update(value.name for value in (*graph.input, *graph.output, *graph.initializer))
        for node in graph.node:
            names.update((node.name, *node.input, *node.output))
    return frozenset(names - {""})


def with_own_names(text: str, own: frozenset[str]) -> str:
    """A message in which each quoted name that was made is that of the file which it begins with.

    Parameters
    ----------
    text : str
    own : frozenset of str
        The file's names, by `own_names`.
    """
    return re.sub(r"'([^'\s]+/[^'\s]*)'", lambda quoted: f"'{_own(quoted[1], own)}'", text)


def _own(name: str, own: frozenset[str]) -> str:
    """The longest beginning of a name that the file has; the name itself where there is none."""
    found = name
    while found not in own and "/" in found:
        found = found.rpartition("/")[0]
    return found if found in own else name
