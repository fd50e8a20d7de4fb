"""Damaged models: bytes, and structure."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..case import ModelCase
from .graphs import graph_case

ODD_NAMES = (
    "",
    " ",
    "a b",
    "é",
    "名",
    "x\n",
    'q"uote',
    "..",
    "/",
    "%s",
    "{}",
    "main",
    "x" * 300,
    "0",
    "lv",
    "v0",
    "\\",
)
HUGE = (0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**40, 10**12, 2**62, 2**63 - 1)


def damaged_case(seed: int) -> ModelCase:
    """A valid model of few nodes, damaged once or a few times."""
    rng = random.Random(f"files/{seed}")
    case = graph_case(seed ^ 0xF11E5, most=rng.choice([1, 2, 4, 6]))
    if rng.random() < 0.25:
        return ModelCase("files", seed, damage_bytes(rng, case.data), case.feeds)
    model = onnx.load_from_string(case.data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        try:
            rng.choice(STRUCTURE)(rng, model)
        except (IndexError, ValueError, OverflowError, TypeError, AssertionError):
            continue  # nothing of that sort to damage, or onnx's helpers cannot write it
    return ModelCase("files", seed, model.SerializeToString(), case.feeds)


def damage_bytes(rng: random.Random, data: bytes) -> bytes:
    """Change, drop, repeat or cut some bytes."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        place = rng.randrange(max(1, len(found)))
        what = rng.randrange(5)
        if what == 0:
            found[place : place + 1] = bytes([rng.randrange(256)])
        elif what == 1:
            found[place : place + 1] = bytes([(found[place] if found else 0) ^ 1 << rng.randrange(8)])
        elif what == 2:
            del found[place : place + rng.randrange(1, 9)]
        elif what == 3:
            found[place:place] = found[place : place + rng.randrange(1, 40)]
        elif rng.random() < 0.3:
            del found[place:]
    return bytes(found)


def _node(rng: random.Random, model: onnx.ModelProto) -> onnx.NodeProto:
    return rng.choice(list(model.graph.node))


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    return [n for node in graph.node for n in (*node.input, *node.output)] + [
        v.name for v in (*graph.input, *graph.output)
    ]


def drop_node(rng: random.Random, model: onnx.ModelProto) -> None:
    del model.graph.node[rng.randrange(len(model.graph.node))]


def repeat_node(rng: random.Random, model: onnx.ModelProto) -> None:
    model.graph.node.append(_node(rng, model))


def swap_nodes(rng: random.Random, model: onnx.ModelProto) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def rewire(rng: random.Random, model: onnx.ModelProto) -> None:
    ends = rng.choice([_node(rng, model).input, _node(rng, model).output])
    ends[rng.randrange(len(ends))] = rng.choice([*_names(model), ""])


def change_inputs(rng: random.Random, model: onnx.ModelProto) -> None:
    inputs = _node(rng, model).input
    inputs.append(rng.choice([*_names(model), ""])) if rng.random() < 0.5 else inputs.pop()


def change_op(rng: random.Random, model: onnx.ModelProto) -> None:
    from ..operators import TABLE

    _node(rng, model).op_type = rng.choice([*TABLE, "Unknown", ""])


def change_attribute(rng: random.Random, model: onnx.ModelProto) -> None:
    node = _node(rng, model)
    attributes = list(node.attribute)
    attribute = rng.choice(attributes)
    node.attribute.remove(attribute)
    value: Any = helper.get_attribute_value(attribute)
    choices = [None, rng.choice(HUGE), -rng.choice(HUGE), 0.5, float("nan"), "odd", [], [rng.choice(HUGE)] * 2]
    if isinstance(value, list) and value:
        choices += [[*value, value[-1]], value[:-1], [rng.choice(HUGE), *value[1:]], [-v for v in value]] * 2
    elif isinstance(value, int | float):
        choices += [value + 1, value - 1, -value] * 2
    new = rng.choice(choices)
    if new is not None:
        kind = attribute.type if new == [] else None
        node.attribute.append(helper.make_attribute(attribute.name, new, attr_type=kind))


def change_dimension(rng: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    info = rng.choice([*graph.input, *graph.input, *graph.output])
    dims = info.type.tensor_type.shape.dim
    what = rng.randrange(4)
    if what == 0:
        dims.add().dim_value = rng.choice([1, 2, *HUGE])
    elif what == 1:
        dims.pop()
    elif what == 2:
        rng.choice(list(dims)).dim_param = rng.choice(["N", ""])
    else:
        rng.choice(list(dims)).dim_value = rng.choice([1, 2, 3, 5, *HUGE])


def change_type(rng: random.Random, model: onnx.ModelProto) -> None:
    info = rng.choice([*model.graph.input, *model.graph.output])
    info.type.tensor_type.elem_type = rng.randrange(0, 26)


def change_constant(rng: random.Random, model: onnx.ModelProto) -> None:
    tensor = rng.choice(list(model.graph.initializer))
    what = rng.randrange(4)
    if what == 0:
        tensor.data_type = rng.randrange(0, 26)
    elif what == 1:
        tensor.dims.append(rng.choice([1, 2, *HUGE])) if rng.random() < 0.5 else tensor.dims.pop()
    elif what == 2:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data))]
    else:
        array = numpy_helper.to_array(tensor).copy()
        numbers = (*HUGE, *(-number for number in HUGE), -(2**63), -7, 100)
        ends = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        pool = [number for number in numbers if ends is None or ends.min <= number <= ends.max]
        array.flat[slice(None) if rng.random() < 0.2 else rng.randrange(array.size)] = rng.choice(pool)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def rename(rng: random.Random, model: onnx.ModelProto) -> None:
    old, new = rng.choice(_names(model)), rng.choice([*ODD_NAMES, rng.choice(_names(model))])
    graph = model.graph
    for node in graph.node:
        for ends in (node.input, node.output):
            for i, name in enumerate(ends):
                ends[i] = new if name == old else name
    for thing in (*graph.input, *graph.output, *graph.initializer):
        thing.name = new if thing.name == old else thing.name


def rename_node(rng: random.Random, model: onnx.ModelProto) -> None:
    _node(rng, model).name = rng.choice(ODD_NAMES)


def change_opset(rng: random.Random, model: onnx.ModelProto) -> None:
    model.opset_import[0].version = rng.choice([0, 1, 6, 7, 10, 12, 13, 17, 18, 21, 24, 26, 30, 10**9])
    if rng.random() < 0.2:
        model.opset_import[0].domain = "odd"


def change_ends(rng: random.Random, model: onnx.ModelProto) -> None:
    ends = rng.choice([model.graph.input, model.graph.output, model.graph.initializer])
    ends.append(rng.choice(list(ends))) if rng.random() < 0.4 else ends.pop(rng.randrange(len(ends)))


def constants_to_inputs(rng: random.Random, model: onnx.ModelProto) -> None:
    """An initializer that is an input too, or an input only."""
    tensor = rng.choice(list(model.graph.initializer))
    model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    if rng.random() < 0.5:
        model.graph.initializer.remove(tensor)


STRUCTURE: tuple[Callable[[random.Random, onnx.ModelProto], None], ...] = (
    drop_node, repeat_node, swap_nodes, rewire, rewire, change_inputs, change_op, change_attribute, change_attribute,
    change_attribute, change_dimension, change_dimension, change_type, change_constant, change_constant, rename,
    rename_node, change_opset, change_ends, constants_to_inputs,
)  # fmt: skip
