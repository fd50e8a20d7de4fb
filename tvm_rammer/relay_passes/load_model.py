"""Load a model of any of the supported kinds as a Relax module of static shapes."""

import os
from collections.abc import Mapping
from typing import Any

import tvm

from ..errors import LengthError, ModelError, RammerError, UnsupportedOperatorError, first_line
from ..ir import Length
from ..onnx_metadata import attach_metadata, onnx_metadata
from ..serial import serial
from .aten.read import is_program_file, read_program
from .onnx.shapes import Shapes


@serial
def load_model(
    model: Any,
    shapes: Shapes | None = None,
    *,
    symbolic: bool = False,
    loops: bool = False,
    join: bool = False,
    roll: bool = False,
    data_loops: bool = False,
    length: Length | None = None,
) -> tvm.IRModule:
    """Load a model as a Relax module whose function "main" has static shapes and its weights as constants.

    Parameters
    ----------
    model : path, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
        An .onnx file or one of torch.export.save, .pt2 (str or PathLike), or a model in memory, which is never changed.
    shapes : mapping of str to int or sequence of int, optional
        Static shapes of inputs by name, and sizes of symbolic dimensions by name.
    symbolic : bool
        Whether shapes stay open: `shapes` has for each input its sizes and names of dimensions. Of a Relax module
        the symbolic dimensions stay as they are.
    loops : bool
        Whether recurrent layers and loops stay loops where they can; otherwise all are unrolled.
    join : bool
        Whether loops of which each reads, step by step, what another makes become one, as stacked layers do.
    roll : bool
        Whether recurrence that an ONNX model has step by step becomes loops; otherwise it stays as it is.
    data_loops : bool
        Whether loops of an ONNX model that data end may be loops of an rProgram; otherwise each round is called.
    length : Length, optional
        What of an ONNX model is learnt from each call.

    Returns
    -------
    tvm.IRModule
        Parameters of "main" keep the names of the model's inputs.

    Raises
    ------
    ShapeError
        A dimension is open and no value was given for it, or a given shape does not fit.
    UnsupportedOperatorError
        TVM's frontend lacks an operator.
    ModelError
        The model cannot be read or imported.
    LoopError
        A loop cannot stay one.
    LengthError
        The length cannot be learnt from a call.
    MissingToolError
        It is a .pt2 file, and PyTorch is not installed.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ModelError(
            f"shapes is {shapes!r}; give a mapping of names to sizes, as in {{'x': (1, 3, 224, 224)}} or {{'batch': 1}}"
        )
    if (relax := as_relax(model)) is not None:
        if length is not None:
            raise LengthError("it is no ONNX model")
        return _load_relax(relax, shapes, symbolic, loops, join)
    kind = type(model)
    if isinstance(model, str | os.PathLike) or (
        kind.__name__ == "ModelProto" and kind.__module__.partition(".")[0].startswith("onnx")
    ):
        ways = {"loops": loops, "join": join, "roll": roll, "data_loops": data_loops}
        return _load_onnx(model, shapes, symbolic, length, ways)
    raise ModelError(
        f"cannot load a model from {kind.__module__}.{kind.__qualname__}; give the path of an .onnx or .pt2 file, "
        f"an onnx.ModelProto, a Relax IRModule or a torch.export.ExportedProgram"
    )


@serial
def as_relax(model: Any) -> tvm.IRModule | None:
    """A Relax module as it is, and a torch.export program or the file of one as a Relax module; None for others.

    Raises
    ------
    UnsupportedOperatorError, ModelError
        The program cannot be read or imported.
    MissingToolError
        It is a .pt2 file, and PyTorch is not installed.
    """
    if isinstance(model, tvm.IRModule):
        return model
    kind = type(model)
    if is_program_file(model):
        from .static_relax import import_torch

        return import_torch(read_program(model))
    if kind.__name__ == "ExportedProgram" and kind.__module__.partition(".")[0] == "torch":
        from .static_relax import import_torch

        return import_torch(model)
    return None


def _load_relax(mod: tvm.IRModule, shapes: Any, symbolic: bool, loops: bool, join: bool) -> tvm.IRModule:
    from .loops.recurrent_layer import expand_layers, has_layers
    from .loops.torch_scan import expand_scans, has_scans
    from .static_relax import static_relax

    if not symbolic:
        return expand_layers(expand_scans(static_relax(mod, shapes), loops=loops), loops=loops, join=join)
    if has_layers(mod) or has_scans(mod):
        raise UnsupportedOperatorError("TVM has no recurrent layers of open shapes; give all sizes by `shapes`")
    return mod.clone()


def _load_onnx(
    model: Any, shapes: Any, symbolic: bool, length: Length | None, ways: Mapping[str, bool]
) -> tvm.IRModule:
    from .onnx.convert_opset import convert_opset
    from .onnx.lower_model import check_learned, lower_and_import
    from .onnx.open_length.lengths import import_any_length
    from .onnx.read import read_onnx
    from .onnx.shapes import fix_input_shapes, name_input_shapes

    proto = read_onnx(model)
    metadata = onnx_metadata(proto)
    check_learned(proto)
    if length is None:
        (name_input_shapes if symbolic else fix_input_shapes)(proto, shapes)
    try:
        if length is not None:
            return attach_metadata(import_any_length(proto, shapes, length), metadata)
        return attach_metadata(lower_and_import(convert_opset(proto), **ways), metadata)
    except RammerError:
        raise
    except Exception as error:  # a model that says what onnx's checker should not have let pass
        raise ModelError(f"the ONNX model cannot be understood: {first_line(error)}; export it again") from error
