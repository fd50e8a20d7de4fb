"""One model of a certain length, lowered, becomes the model of all lengths up to a bound."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx
import tvm
from onnx import numpy_helper

from ....errors import LengthError
from ....ir import LENGTH, LOOPS, OUTPUT_NAMES, Length
from ..check.names import describe
from ..control.outline import is_control
from ..convert_opset import convert_opset
from ..fold import fold_onnx
from ..importer import import_onnx
from ..infer import infer_types, static_dims
from ..lower.recurrence.cells import CELLS
from ..lower_model import lower
from ..shapes import fix_input_shapes
from .axes import Lowered
from .cut import cut

ROWS = 16
"""How many rows are computed together where each is computed by itself: a product reads its weights once for them, and
the last of them may be beyond the end."""

Shapes = Mapping[str, tuple[int, ...]]


def import_any_length(model: onnx.ModelProto, shapes: Shapes, length: Length) -> tvm.IRModule:
    """Import a model whose sequences may have any length.

    What is lowered is the model of a short length, and that of one row more: where anything but a shape that rows are
    brought into differs between them, results depend on the length in a way that is not known.

    Parameters
    ----------
    model : onnx.ModelProto
        As it was read; is not changed.
    shapes : mapping of str to tuple of int
        Of each input; the size of the axis that has the length does not matter.
    length : Length

    Returns
    -------
    tvm.IRModule
        As `import_onnx` makes it; its function "main" has the attribute `LENGTH`.

    Raises
    ------
    LengthError
        Something in the model does not go row by row, or has no loop.
    ModelError, LoopError
        As for a model of a known length.
    """
    if not any(node.op_type in LOOPS for graph in (model.graph, *model.functions) for node in graph.node):
        raise LengthError("it has no recurrent layer and no Scan")
    few, more = (_lowered(model, shapes, length, rows) for rows in (ROWS, ROWS + 1))
    _compare(few, more)
    number = f"{length.name}_of_call"
    while any(value.name == number for value in few.model.graph.input):
        number += "_"
    room = max(2, -(-length.most // ROWS)) * ROWS
    mod = import_onnx(cut(few, room, number), loops=True)
    results = [few.axes.get(value.name) for value in few.model.graph.output]
    for value, axis in zip(few.model.graph.output, results, strict=True):
        if axis is not None and few.shapes[value.name][axis] != ROWS:
            raise LengthError(f"the result {value.name!r} has several entries for each of its rows along one axis")
    told = replace(length, room=room, outputs=tuple(results))
    names = [value.name for value in few.model.graph.output]
    main = mod["main"].with_attr({LENGTH: told.text(), OUTPUT_NAMES: names})
    mod.update_func(mod.get_global_var("main"), main)
    return mod


def _lowered(model: onnx.ModelProto, shapes: Shapes, length: Length, rows: int) -> Lowered:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    axes = {name: axis for name, axis in zip(shapes, length.inputs, strict=True) if axis is not None}
    sizes = {name: tuple(rows if axes.get(name) == a else n for a, n in enumerate(s)) for name, s in shapes.items()}
    fix_input_shapes(copy, sizes)
    copy = convert_opset(copy)
    fold_onnx(copy)
    _check_lengths(copy, rows)
    lower(copy, loops=True, ahead=True)
    if control := next(filter(is_control, copy.graph.node), None):
        raise LengthError(f"{describe(control)} is decided by data")
    known = {name: static_dims(kind) for name, kind in infer_types(copy).items()}
    lowered = Lowered(copy, rows, axes, {name: tuple(dims) for name, dims in known.items() if dims is not None})
    lowered.find_axes()
    return lowered


def _check_lengths(model: onnx.ModelProto, rows: int) -> None:
    """Refuse constant lengths of the sequences in a batch, but for those that say that all of them are full."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        lengths = constants.get(node.input[4]) if node.op_type in CELLS and len(node.input) > 4 else None
        if lengths is not None and not (numpy_helper.to_array(lengths) == rows).all():
            raise LengthError(f"{describe(node)} has sequences of constant lengths")


def _compare(few: Lowered, more: Lowered) -> None:
    """Refuse models of two lengths that differ by more than the shapes that rows are brought into."""
    nodes = few.model.graph.node, more.model.graph.node
    if len(nodes[0]) != len(nodes[1]) or few.axes != more.axes:
        raise LengthError("the model of another length has other operators")
    for one, other in zip(*nodes, strict=True):
        if one != other:
            raise LengthError(f"{describe(one)} is another operator for another length")
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes[0]:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    if few.constants.keys() != more.constants.keys():
        raise LengthError("the model of another length has other constants")
    for name, array in few.constants.items():
        if not np.array_equal(array, more.constants[name]) and not _is_of_rows(few, more, name, readers.get(name, [])):
            raise LengthError(f"the constant {name!r} depends on the length")


def _is_of_rows(few: Lowered, more: Lowered, name: str, readers: list[onnx.NodeProto]) -> bool:
    """Whether a constant is a shape for rows, or numbers the steps of loops."""
    if all(node.op_type == "Reshape" and node.input[0] in few.axes and node.input[1] == name for node in readers):
        return True
    numbers = all(np.array_equal(one.constants[name], np.arange(one.rows)) for one in (few, more))
    return numbers and all(node.op_type == "Scan" for node in readers)
