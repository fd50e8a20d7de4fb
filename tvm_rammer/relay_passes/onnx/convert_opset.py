"""Rewrite the operators of an ONNX model that TVM's frontend would misread, or lacks, by others that it has."""

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import onnx.version_converter

from ...errors import ModelError, first_line
from .fold import infer_types
from .inline import all_nodes, rename_inputs, subgraphs
from .read import default_opset, skeleton

OLDEST_OPSET = 13
"""What a model is converted to where TVM's frontend would misread it."""

_MISREAD_BEFORE = {"ReverseSequence": 12, "Slice": 10}
_MISREAD_AT = {"ConvInteger": 10, "QLinearConv": 10, "TopK": 10}
"""Before it TopK says by an attribute how many it finds; bytes that are convolved are padded by an input."""
_UNROLLED_SINCE = {"LSTM": 10, "GRU": 10, "RNN": 10, "Scan": 10}
_BROADCAST = frozenset(["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"])


def convert_opset(model: onnx.ModelProto) -> onnx.ModelProto:
    """Rewrite what TVM's frontend would misread, or lacks, by operators that it has.

    The frontend takes an operator older than its oldest converter for one of that converter's version: it ignores
    the broadcast attributes before opset 7, and fails on the attributes of the first Slice. Recurrent layers and Scan
    are unrolled to operators of opset 10.

    Parameters
    ----------
    model : onnx.ModelProto

    Returns
    -------
    onnx.ModelProto
        The same one where nothing was to be done.

    Raises
    ------
    ModelError
        onnx's version converter fails.
    """
    version = default_opset(model)
    _state_defaults(model, version)
    _give_axes_to_numbers(model)
    if version < 7:
        _use_numpy_broadcasting(model)
    operators = {node.op_type for node in all_nodes(model.graph)}
    if version < 9 and "Scan" in operators:
        raise ModelError(
            f"the model has a Scan of opset {version}, whose inputs have a batch axis; export it with opset 9"
        )
    needed = _MISREAD_BEFORE | _UNROLLED_SINCE
    misread = any(op in operators and version < since for op, since in needed.items())
    if version < 7 or misread or any(op in operators and version == at for op, at in _MISREAD_AT.items()):
        try:
            model = _on_skeleton(model, lambda bare: onnx.version_converter.convert_version(bare, OLDEST_OPSET))
        except Exception as error:
            raise ModelError(
                f"the model has opset {version}, and onnx cannot convert it to {OLDEST_OPSET}: {first_line(error)}; "
                f"export it again with opset {OLDEST_OPSET} or later"
            ) from error
        for node in all_nodes(model.graph):
            if version < 11 and node.op_type == "Resize":  # an Upsample's result has another name since
                _read_asymmetrically(node)
        if version < 11 and "Clip" in operators:
            _fit_bounds(model)
    return model


def _state_defaults(model: onnx.ModelProto, version: int) -> None:
    """Give nodes the attributes that they leave out and whose defaults are no short decimals, in place.

    Defaults are numbers of float32: LeakyRelu's slope is 0.00999999977648258, which TVM's frontend and functions in
    float64 would take for 0.01. Of Selu they were others before opset 6.
    """
    defaults = cache(lambda operator: _uneven_defaults(operator, version))
    for node in all_nodes(model.graph):
        if node.domain in ("", "ai.onnx"):
            stated = {attribute.name for attribute in node.attribute}
            node.attribute.extend(default for default in defaults(node.op_type) if default.name not in stated)


def _uneven_defaults(operator: str, version: int) -> list[onnx.AttributeProto]:
    """The default attributes of an operator that differ from the shortest decimal which is the same in float32."""
    try:
        attributes = onnx.defs.get_schema(operator, version).attributes.values()
    except onnx.defs.SchemaError:
        return []  # whoever needs it says that there is no such operator
    defaults = [attribute.default_value for attribute in attributes]
    floats = [default for default in defaults if default.type == onnx.AttributeProto.FLOAT and default.name]
    # The bounds of the first Clip are the largest numbers of float32, which is none.
    return [d for d in floats if operator != "Clip" and float(str(np.float32(d.f))) != d.f]


def _give_axes_to_numbers(model: onnx.ModelProto) -> None:
    """Make scalars of what bodies of loops take for vectors, in place: the round's number, and the condition.

    By ONNX these are scalars. ONNX Runtime gives an axis to them where a body says so, as tf2onnx's do.
    """
    for node in all_nodes(model.graph):
        for body in subgraphs(node) if node.op_type == "Loop" else ():
            for value in body.input[:2]:
                if len(value.type.tensor_type.shape.dim) == 1:
                    del value.type.tensor_type.shape.dim[:]
                    _read_as_vector(body, value.name)


def _read_as_vector(body: onnx.GraphProto, name: str) -> None:
    """Let a scalar be a vector to all that read it, but where it is the next round's condition, unchanged."""
    if not any(name in node.input for node in all_nodes(body)):
        return
    vector, shape = f"{name}/:vector/made", f"{name}/:vector/shape"
    for node in body.node:
        if node.op_type != "Identity" or node.output[0] != body.output[0].name:
            rename_inputs(node, {name: vector})
    for value in body.output[1:]:
        value.name = vector if value.name == name else value.name
    nodes = [onnx.helper.make_node("Reshape", [name, shape], [vector]), *body.node]
    del body.node[:]
    body.node.extend(nodes)
    body.initializer.append(onnx.numpy_helper.from_array(np.array([1], np.int64), shape))


def _read_asymmetrically(node: onnx.NodeProto) -> None:
    """Resizes before opset 11 read at x / scale; onnx's version converter does not say so."""
    as_before = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    kept = [a for a in node.attribute if a.name not in as_before]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in as_before.items())


def _fit_bounds(model: onnx.ModelProto) -> None:
    """Give bounds of Clip the type of what they bound, in place; onnx's version converter makes all of float32."""
    types = infer_types(model)
    made = {node.output[0]: node for node in model.graph.node if node.op_type == "Constant"}
    for node in model.graph.node:
        elem = types[node.input[0]].elem_type if node.op_type == "Clip" and node.input[0] in types else 0
        for name in node.input[1:] if elem else ():
            value = made[name].attribute[0].t
            with np.errstate(over="ignore"):
                bound = onnx.numpy_helper.to_array(value).astype(onnx.helper.tensor_dtype_to_np_dtype(elem))
            value.CopyFrom(onnx.numpy_helper.from_array(bound))


def _use_numpy_broadcasting(model: onnx.ModelProto) -> None:
    """Before opset 7 the second operand's dimensions were matched from the attribute `axis` on: append ones to it.

    onnx's version converter refuses such nodes.
    """
    types = infer_types(model)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        attributes = {a.name: a.i for a in node.attribute}
        known = all(name in types and types[name].HasField("shape") for name in node.input)
        if node.op_type in _BROADCAST and len(node.input) == 2 and known:
            left, right = (len(types[name].shape.dim) for name in node.input)
            axis = 1 if node.op_type == "PRelu" else attributes.get("axis", left - right)
            missing = left - (axis + left if axis < 0 else axis) - right
            if missing > 0 and (right > 1 or any(d.dim_value != 1 for d in types[node.input[1]].shape.dim)):
                name = f"{node.output[0]}/aligned"
                axes = list(range(right, right + missing))
                nodes.append(onnx.helper.make_node("Unsqueeze", [node.input[1]], [name], axes=axes))
                node.input[1] = name
            kept = [a for a in node.attribute if a.name not in ("axis", "broadcast", "consumed_inputs")]
            del node.attribute[:]
            node.attribute.extend(kept)
        nodes.append(node)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _on_skeleton(model: onnx.ModelProto, change: Callable[[onnx.ModelProto], onnx.ModelProto]) -> onnx.ModelProto:
    bare = skeleton(model)
    large = {tensor.name for tensor in model.graph.initializer} - {tensor.name for tensor in bare.graph.initializer}
    changed = change(bare)
    inputs = [value for value in changed.graph.input if value.name not in large]
    del changed.graph.input[:]
    changed.graph.input.extend(inputs)
    changed.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in large)
    return changed
