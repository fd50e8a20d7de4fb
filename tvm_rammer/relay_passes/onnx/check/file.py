"""What a file may not say: where onnx's own tools believe it, or end the process."""

import re

import onnx

from ....ir import MOST_ELEMENTS
from ..inline import all_nodes

_MOST_AXES = 1024
"""Of one tensor, generously."""

_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


def check_inputs(model: onnx.ModelProto) -> None:
    """Refuse nodes that leave out an input which they need: onnx's checker lets them pass, TVM's frontend crashes."""
    versions = {o.domain.removeprefix("ai.onnx"): o.version for o in model.opset_import if o.domain in ("", "ai.onnx")}
    for node in all_nodes(model.graph):
        left_out = [i for i, name in enumerate(node.input) if not name]
        if not left_out or node.domain not in ("", "ai.onnx"):
            continue
        formal = onnx.defs.get_schema(node.op_type, versions.get("", 1)).inputs
        for index in left_out:
            given = formal[min(index, len(formal) - 1)]
            if given.option != onnx.defs.OpSchema.FormalParameterOption.Optional:
                raise ValueError(f"{node.op_type} {node.name or node.output[0]!r} leaves out its input {index}")


def check_axes(graph: onnx.GraphProto) -> None:
    """Refuse axes that no tensor has, and outputs that are not there: onnx's shape inference trusts them."""
    axes = -_MOST_AXES, _MOST_AXES
    for node in all_nodes(graph):
        outputs = len(node.output), len(node.output)
        bounds = {"axis": axes, "axes": axes, "batch_dims": (0, _MOST_AXES), "num_outputs": outputs}
        for attribute in node.attribute:
            if attribute.name not in bounds or node.domain not in ("", "ai.onnx"):
                continue
            lowest, highest = bounds[attribute.name]
            for number in (attribute.i, *attribute.ints):
                if not lowest <= number <= highest:
                    name = node.name or node.output[0]
                    raise ValueError(f"{node.op_type} {name!r} has the {attribute.name} {number}")


def check_equations(graph: onnx.GraphProto) -> None:
    """Refuse equations of Einsum that are none: onnx's shape inference may read them for ever."""
    for node in all_nodes(graph):
        for attribute in node.attribute if node.op_type == "Einsum" and node.domain in ("", "ai.onnx") else ():
            equation = attribute.s.decode(errors="replace")
            if attribute.name == "equation" and not _EQUATION.fullmatch(equation.replace(" ", "")):
                raise ValueError(f"Einsum {node.name or node.output[0]!r} has the equation {equation!r}")


def check_ranges(model: onnx.ModelProto) -> None:
    """Refuse ranges that nobody can hold: onnx's shape inference would write all their values down."""
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in all_nodes(model.graph):
        if node.op_type == "Constant":
            known.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
        if node.op_type == "Range" and all(name in known for name in node.input):
            begin, end, step = (float(onnx.numpy_helper.to_array(known[name]).item()) for name in node.input)
            count = (end - begin) / step if step else 0.0
            if count >= MOST_ELEMENTS:
                raise ValueError(
                    f"Range {node.name or node.output[0]!r} has {count:.0f} elements, of which less than "
                    f"{MOST_ELEMENTS} can be addressed"
                )
