"""Loops: a Loop or Scan whose number of iterations is known stays one, as a Scan, or becomes its body so many times."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from .....errors import LongLoopError
from ...check.names import name_of
from ...emit import Constants, Emitter, Types, replace_nodes
from ...infer import static_dims
from ...inline import all_nodes, copy_nodes
from ...read import default_opset
from .as_scan import as_scan
from .counted import Counted, count

MOST_NODES = 100_000
"""What all unrolled loops may hold together: so many nodes take minutes to compile."""

FEWEST_ITERATIONS = 8
"""A loop of fewer iterations, as a recurrent layer of fewer steps, is unrolled in any case."""


def unroll_loops(model: onnx.ModelProto, *, keep: bool) -> bool:
    """Replace the Loop and Scan nodes that run a known number of times, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later.
    keep : bool
        Whether they stay loops, but for short ones: a Loop becomes a Scan then. Otherwise all are unrolled.

    Returns
    -------
    bool
        Whether there were any.

    Raises
    ------
    LongLoopError
        All loops together would have more than `MOST_NODES` nodes.
    """
    opset, size = default_opset(model), 0

    def replacement(node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        nonlocal size
        loop = _read(node, constants, types, opset)
        if loop is None:
            return None
        if keep and loop.iterations >= FEWEST_ITERATIONS:
            if loop.counted is None:
                return None
            return as_scan(node, loop.counted, Emitter(node, opset), constants, types)
        size += loop.iterations * sum(1 for _ in all_nodes(loop.body))
        if size > MOST_NODES:
            raise LongLoopError(
                f"{node.op_type} {name_of(node)!r} runs {loop.iterations} times, which makes more than "
                f"{MOST_NODES} nodes of all loops; give a smaller input"
            )
        emit = Emitter(node, opset)
        _unroll(loop, emit)
        return emit

    return replace_nodes(model, replacement)


@dataclass(frozen=True, slots=True)
class _Scanned:
    """What a Scan reads or writes a slice of in every iteration; a Loop only writes such."""

    name: str
    axis: int
    backward: bool


@dataclass(frozen=True, slots=True)
class _Loop:
    """A Loop or a Scan.

    Parameters
    ----------
    iterations : int
        At least one.
    counted : Counted, optional
        Of a Loop: the first inputs of its body are the number of the iteration and a condition, and its first output
        is the next condition.
    states : tuple of str
        Their values at first.
    results : tuple of str
        The states' names at last; "" where nobody asks.
    """

    body: onnx.GraphProto
    iterations: int
    counted: Counted | None
    states: tuple[str, ...]
    results: tuple[str, ...]
    reads: tuple[_Scanned, ...] = ()
    writes: tuple[_Scanned, ...] = ()


def _read(
    node: onnx.NodeProto,
    constants: Constants,
    types: Types,
    opset: int,
) -> _Loop | None:
    """What a node says; None for one that is no loop, or that runs a number of times that is not known."""
    if node.domain not in ("", "ai.onnx"):
        return None
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Loop":
        return _read_loop(node, attributes["body"], constants, opset)
    return _read_scan(node, attributes, types) if node.op_type == "Scan" else None


def _read_loop(node: onnx.NodeProto, body: onnx.GraphProto, constants: Constants, opset: int) -> _Loop | None:
    counted = count(node, body, constants, opset)
    if counted is None:
        return None
    states = tuple(node.input[2:])
    writes = tuple(_Scanned(name, 0, False) for name in node.output[len(states) :])
    return _Loop(body, counted.rounds, counted, states, tuple(node.output[: len(states)]), (), writes)


def _read_scan(node: onnx.NodeProto, attributes: Mapping[str, Any], types: Types) -> _Loop | None:
    body, count = attributes["body"], attributes["num_scan_inputs"]
    num_states = len(node.input) - count
    if num_states < 0 or len(body.input) != len(node.input):
        return None

    def scanned(names: Sequence[str], side: str, rank: Sequence[int]) -> tuple[_Scanned, ...]:
        axes = attributes.get(f"scan_{side}_axes") or [0] * len(names)
        backward = attributes.get(f"scan_{side}_directions") or [0] * len(names)
        return tuple(
            _Scanned(name, axis + r if axis < 0 else axis, bool(back))
            for name, axis, back, r in zip(names, axes, backward, rank, strict=True)
        )

    names = node.input[num_states:]
    dims = [static_dims(types.get(name)) for name in names]
    written = [len(value.type.tensor_type.shape.dim) + 1 for value in body.output[num_states:]]
    known = [d for d in dims if d is not None]
    if not dims or len(known) < len(dims):
        return None
    reads = scanned(names, "input", [len(d) for d in known])
    iterations = {d[read.axis] for d, read in zip(known, reads, strict=True)}
    if len(iterations) != 1 or 0 in iterations:
        return None
    writes = scanned(node.output[num_states:], "output", written)
    results = tuple(node.output[:num_states])
    return _Loop(body, iterations.pop(), None, tuple(node.input[:num_states]), results, reads, writes)


def _unroll(loop: _Loop, emit: Emitter) -> None:
    """Add the nodes of all iterations, and give the results the names of the loop's outputs."""
    shared = {tensor.name: emit.copy(tensor) for tensor in loop.body.initializer}
    states = list(loop.states)
    written: list[list[str]] = [[] for _ in loop.writes]
    for number in range(loop.iterations):
        given = [*_numbered(loop, number, emit), *states, *_slices(loop, number, emit)]
        names = shared | {value.name: name for value, name in zip(loop.body.input, given, strict=True)}
        nodes, results = copy_nodes(loop.body, f"{emit.prefix}{number}/", names)
        emit.nodes += nodes
        made = results[loop.counted is not None :]
        states = made[: len(states)]
        for some, name in zip(written, made[len(states) :], strict=True):
            some.append(name)
    for name, result in zip(loop.results, states, strict=True):
        if name:
            emit.name(result, name)
    for write, some in zip(loop.writes, written, strict=True):
        if write.name:
            rows = [emit.axes("Unsqueeze", name, write.axis) for name in some]
            emit.name(emit.join(rows[::-1] if write.backward else rows, write.axis), write.name)


def _numbered(loop: _Loop, number: int, emit: Emitter) -> Iterator[str]:
    if loop.counted is not None:
        yield emit.constant(np.array(number, np.int64))
        yield emit.constant(np.array(True))


def _slices(loop: _Loop, number: int, emit: Emitter) -> Iterator[str]:
    """What a Scan reads in one iteration."""
    for read in loop.reads:
        at = loop.iterations - 1 - number if read.backward else number
        yield emit.axes("Squeeze", emit.part(read.name, read.axis, at, at + 1), read.axis)
