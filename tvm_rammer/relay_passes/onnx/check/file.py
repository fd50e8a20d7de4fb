"""What a file may not say: where onnx's own tools believe it, or end the process."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import onnx

from ....ir import MOST_ELEMENTS
from ..inline import all_nodes, subgraphs
from .microsoft import NEEDED

MOST_AXES = 1024
"""Of one tensor, generously."""

_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


def check_inputs(model: onnx.ModelProto) -> None:
    """Refuse nodes that leave out an input which they need: onnx's checker lets them pass, TVM's frontend crashes.

    Raises
    ------
    ValueError
        Names the node and the input; `read_onnx` makes a ModelError of it.
    """
    versions = {o.domain.removeprefix("ai.onnx"): o.version for o in model.opset_import if o.domain in ("", "ai.onnx")}
    for node in all_nodes(model.graph):
        index = left_out(node, versions.get("", 1))
        if index is not None:
            raise ValueError(f"{node.op_type} {node.name or node.output[0]!r} leaves out its input {index}")


def left_out(node: onnx.NodeProto, opset: int) -> int | None:
    """Which input an operator of ONNX or ONNX Runtime needs and does not get, by its number; None where there is none.

    Parameters
    ----------
    node : onnx.NodeProto
    opset : int
        The version of ONNX's operators.
    """
    if node.domain == "com.microsoft":
        given = {number for number, name in enumerate(node.input) if name}
        return next((number for number in NEEDED.get(node.op_type, ()) if number not in given), None)
    if node.domain not in ("", "ai.onnx"):
        return None
    needed, least = _needed(node.op_type, opset)
    names = [*node.input, *[""] * (least - len(node.input))]
    return next((i for i, name in enumerate(names) if not name and needed[min(i, len(needed) - 1)]), None)


@cache
def _needed(kind: str, opset: int) -> tuple[Sequence[bool], int]:
    """Of each input of an operator whether it must be given, and how many there are at least; none of what is new."""
    try:
        schema = onnx.defs.get_schema(kind, opset)
    except onnx.defs.SchemaError:
        return [False], 0
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return [given.option != optional for given in schema.inputs] or [False], schema.min_input


def check_axes(graph: onnx.GraphProto) -> None:
    """Refuse axes that no tensor has, and outputs that are not there: onnx's shape inference trusts them.

    Raises
    ------
    ValueError
        Names the node and the attribute.
    """
    axes = -MOST_AXES, MOST_AXES
    for node in all_nodes(graph):
        outputs = len(node.output), len(node.output)
        bounds = {"axis": axes, "axes": axes, "batch_dims": (0, MOST_AXES), "num_outputs": outputs}
        for attribute in node.attribute:
            if attribute.name not in bounds or node.domain not in ("", "ai.onnx"):
                continue
            lowest, highest = bounds[attribute.name]
            for number in (attribute.i, *attribute.ints):
                if not lowest <= number <= highest:
                    name = node.name or node.output[0]
                    raise ValueError(f"{node.op_type} {name!r} has the {attribute.name} {number}")


def check_equations(graph: onnx.GraphProto) -> None:
    """Refuse equations of Einsum that are none: onnx's shape inference may read them for ever.

    Raises
    ------
    ValueError
        Names the node and the equation.
    """
    for node in all_nodes(graph):
        for attribute in node.attribute if node.op_type == "Einsum" and node.domain in ("", "ai.onnx") else ():
            equation = attribute.s.decode(errors="replace")
            if attribute.name == "equation" and not _EQUATION.fullmatch(equation.replace(" ", "")):
                raise ValueError(f"Einsum {node.name or node.output[0]!r} has the equation {equation!r}")


def check_scans(graph: onnx.GraphProto) -> None:
    """Refuse axes and directions of a Scan that are as many as nothing in it, or that are none.

    Raises
    ------
    ValueError
        Names the node and what it gives.
    """
    for node in all_nodes(graph):
        if node.op_type != "Scan" or node.domain not in ("", "ai.onnx"):
            continue
        given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        body, states = given["body"], len(node.input) - given["num_scan_inputs"]
        for side, values in (("input", body.input[states:]), ("output", body.output[states:])):
            axes, directions = (given.get(f"scan_{side}_{what}", ()) for what in ("axes", "directions"))
            ranks = [_rank(value) for value in values]
            if not _fit(axes, directions, ranks):
                raise ValueError(
                    f"Scan {node.name or node.output[0]!r} has scan_{side}_axes {list(axes)} and "
                    f"scan_{side}_directions {list(directions)} for {len(values)} {side}s of {ranks} axes in its body"
                )


def _fit(axes: Sequence[int], directions: Sequence[int], ranks: Sequence[int | None]) -> bool:
    """Whether each of these tensors, which have an axis more outside of the body, can be scanned so."""
    if any(len(each) not in (0, len(ranks)) for each in (axes, directions)):
        return False
    known = [(axis, rank) for axis, rank in zip(axes, ranks, strict=False) if rank is not None]
    return set(directions) <= {0, 1} and all(-rank - 1 <= axis <= rank for axis, rank in known)


def _rank(value: onnx.ValueInfoProto) -> int | None:
    kind = value.type.tensor_type
    return len(kind.shape.dim) if kind.HasField("shape") else None


def check_ranges(model: onnx.ModelProto) -> None:
    """Refuse ranges, and tensors of one value, that nobody can hold: onnx's shape inference would write all of it.

    Raises
    ------
    ValueError
        Names the node and the number of elements.
    """
    for graph, known in _with_constants(model.graph, {}):
        for node in graph.node:
            if node.op_type not in ("ConstantOfShape", "Range") or any(name not in known for name in node.input):
                continue
            count = _count(node.op_type, [known[name] for name in node.input])
            if count >= MOST_ELEMENTS:
                raise ValueError(
                    f"{node.op_type} {node.name or node.output[0]!r} has {count:.0f} elements, of which less than "
                    f"{MOST_ELEMENTS} can be addressed"
                )


def _count(kind: str, given: Sequence[onnx.TensorProto]) -> float:
    """How many elements there are of such a shape, or from a begin to an end by a step."""
    values = [onnx.numpy_helper.to_array(tensor).astype(float).ravel() for tensor in given]
    if kind == "ConstantOfShape":
        return float(math.prod(values[0]))
    if any(len(value) != 1 for value in values):
        return 0.0
    begin, end, step = (float(value[0]) for value in values)
    return (end - begin) / step if step else 0.0


def bound_steps(model: onnx.ModelProto) -> None:
    """Let no constant step of a Slice be beyond 32 bits, in place: onnx's inference takes it modulo 2**32.

    A step that is 0 then never ends. No axis is as long as that, so what is bounded means the same.
    """
    most = MOST_ELEMENTS - 1
    for graph, known in _with_constants(model.graph, {}):
        for node in graph.node:
            if node.op_type != "Slice" or len(node.input) < 5 or node.input[4] not in known:
                continue
            steps = onnx.numpy_helper.to_array(known[node.input[4]])
            bounded = steps.clip(-most, most)
            if (bounded != steps).any():
                name = f"{node.output[0]}/bounded"
                graph.initializer.append(onnx.numpy_helper.from_array(bounded, name))
                node.input[4] = name


def _with_constants(
    graph: onnx.GraphProto, outer: Mapping[str, onnx.TensorProto]
) -> Iterator[tuple[onnx.GraphProto, Mapping[str, onnx.TensorProto]]]:
    """A graph and those within it, each with the constants that its nodes see; a name may hide an outer one."""
    known = dict(outer)
    for value in graph.input:
        known.pop(value.name, None)
    known |= {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        for name in node.output:
            known.pop(name, None)
        if node.op_type == "Constant":
            known.update((node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value")
    yield graph, known
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _with_constants(inner, known)
