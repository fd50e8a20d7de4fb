"""Nodes and values by name, for messages."""

import re

import onnx

_MADE = re.compile(r"(.+?)/:[a-z]+\d*/(\d+/)?")
"""A name made by an `Emitter`: the name before it, the pass, and in a loop the number of a round."""


def in_file(name: str) -> str:
    """For messages, the name in the file behind one that was made here.

    Parameters
    ----------
    name : str
        Of a value or a node.

    Returns
    -------
    str
        Of what a round of a loop is a copy of, else of that which was replaced.
    """
    while made := _MADE.match(name):
        name = name[made.end() :] if made[2] else made[1]
    return name


def name_of(node: onnx.NodeProto) -> str:
    """The name of a node for messages, or that of its first result."""
    return in_file(node.name or next(filter(None, node.output), "?"))


def describe(node: onnx.NodeProto) -> str:
    """A node for messages: its operator, and its name or that of its first result, or of what it takes part in."""
    kind = f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type
    name = node.name or next((name for name in node.output if name), "?")
    known = in_file(name)
    is_copy = f"/{name}".endswith(f"/{known}")
    return f"{kind} {known!r}" if is_copy else f"{kind} (a part of {known!r})"
