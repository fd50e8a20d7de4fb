"""Rewrite the operators of an ONNX model that TVM's frontend would misread, or lacks, by others that it has."""

from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import onnx.version_converter

from ...errors import ModelError, first_line
from .data_sizes.coordinates import BEFORE_11
from .infer import infer_types
from .inline import all_nodes, rename_inputs, subgraphs
from .read import default_opset, skeleton

OLDEST_OPSET = 13
"""What a model is converted to where TVM's frontend would misread it."""

_MISREAD_BEFORE = {"ReverseSequence": 12, "Slice": 10}
_MISREAD_AT = {"ConvInteger": 10, "QLinearConv": 10, "TopK": 10}
"""Before it TopK says by an attribute how many it finds; bytes that are convolved are padded by an input."""
_UNROLLED_SINCE = {"LSTM": 10, "GRU": 10, "RNN": 10, "Scan": 10}
_BROADCAST = frozenset(["Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "PRelu", "Sub", "Xor"])

_LACKING = frozenset(["And", "Cast", "GRU", "LSTM", "Or", "RNN", "Xor"])
"""What onnx's version converter does not take across opset 7, and what means the same on both sides."""
_NEW_IN_2 = frozenset(["GlobalLpPool", "LpPool", "Pad", "Split"])
_ASIDE = "tvm_rammer.aside"


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
    _write_as_opset_2(model)
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
            model = _on_skeleton(model, _converted)
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


def _write_as_opset_2(model: onnx.ModelProto) -> None:
    """Write a model of opset 1 as one of opset 2, in place: onnx's version converter has not this step.

    A Split with sizes as an input stays, and so a model that has one.
    """
    changed = [node for node in all_nodes(model.graph) if node.op_type in _NEW_IN_2 and node.domain in ("", "ai.onnx")]
    powers = [a for node in changed for a in node.attribute if node.op_type != "Pad" and a.name == "p"]
    if default_opset(model) != 1 or not all(a.f == int(a.f) for a in powers):
        return
    if any(node.op_type == "Split" and len(node.input) > 1 for node in changed):
        return
    for attribute in powers:
        attribute.CopyFrom(onnx.helper.make_attribute("p", int(attribute.f)))
    for node in changed:
        for attribute in node.attribute:
            attribute.name = "pads" if attribute.name == "paddings" else attribute.name
    for known in model.opset_import:
        if known.domain in ("", "ai.onnx"):
            known.version = 2


def _converted(bare: onnx.ModelProto) -> onnx.ModelProto:
    """A model of opset 13, by onnx's version converter. What that lacks is of another domain meanwhile."""
    aside = [node for node in all_nodes(bare.graph) if node.op_type in _LACKING and node.domain in ("", "ai.onnx")]
    aside = aside if default_opset(bare) < 7 else []
    types, told = infer_types(bare) if aside else {}, {value.name for value in bare.graph.value_info}
    for node in aside:
        node.domain = _ASIDE
        kept = [a for a in node.attribute if a.name != "output_sequence"]  # whether a result is there says its name
        del node.attribute[:]
        node.attribute.extend(kept)
        if node.op_type == "Cast" and node.input[0] in types:
            types[node.output[0]] = _cast_type(node, types[node.input[0]])
        for name in {*node.output} & types.keys() - told:  # what follows may need the shape to be converted
            bare.graph.value_info.append(onnx.ValueInfoProto(name=name, type=onnx.TypeProto(tensor_type=types[name])))
    if aside:
        bare.opset_import.append(onnx.helper.make_opsetid(_ASIDE, 1))
    made = onnx.version_converter.convert_version(bare, OLDEST_OPSET)
    for node in all_nodes(made.graph):
        node.domain = "" if node.domain == _ASIDE else node.domain
    imports = [known for known in made.opset_import if known.domain != _ASIDE]
    del made.opset_import[:]
    made.opset_import.extend(imports)
    return made


def _cast_type(node: onnx.NodeProto, before: onnx.TypeProto.Tensor) -> onnx.TypeProto.Tensor:
    """What a Cast makes of a type, which it says by a name before opset 6; in place it says the number."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.STRING:
            number = onnx.TensorProto.DataType.Value(attribute.s.decode().upper())
            attribute.CopyFrom(onnx.helper.make_attribute(attribute.name, number))
    after = onnx.TypeProto.Tensor()
    after.CopyFrom(before)
    after.elem_type = next((a.i for a in node.attribute if a.name == "to"), 0)
    return after


def _read_asymmetrically(node: onnx.NodeProto) -> None:
    """Resizes before opset 11 read at x / scale; onnx's version converter does not say so."""
    as_before = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": BEFORE_11}
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
