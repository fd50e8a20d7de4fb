"""Load a model of any of the supported kinds as a Relax module of static shapes."""

import os
from collections.abc import Mapping
from typing import Any

import tvm

from ..errors import ModelError, RammerError, first_line
from .aten.read import is_program_file, read_program
from .onnx.shapes import Shapes


def load_model(model: Any, shapes: Shapes | None = None, *, loops: bool = False) -> tvm.IRModule:
    """Load a model as a Relax module whose function "main" has static shapes and its weights as constants.

    Parameters
    ----------
    model : path, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
        An .onnx file or one of torch.export.save, .pt2 (str or PathLike), or a model in memory, which is never changed.
    shapes : mapping of str to int or sequence of int, optional
        Static shapes of inputs by name, and sizes of symbolic dimensions by name.
    loops : bool
        Whether recurrent layers and loops of an ONNX model stay loops (`regions.loops`). TVM cannot run such a module
        before its regions are replaced.

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
    MissingToolError
        It is a .pt2 file, and PyTorch is not installed.
    """
    if shapes is not None and not isinstance(shapes, Mapping):
        raise ModelError(
            f"shapes is {shapes!r}; give a mapping of names to sizes, as in {{'x': (1, 3, 224, 224)}} or {{'batch': 1}}"
        )
    if isinstance(model, tvm.IRModule):
        from .static_relax import static_relax

        return static_relax(model, shapes)
    kind = type(model)
    if kind.__name__ == "ExportedProgram" and kind.__module__.partition(".")[0] == "torch":
        from .static_relax import import_torch

        return import_torch(model, shapes)
    if is_program_file(model):
        from .static_relax import import_torch

        return import_torch(read_program(model), shapes)
    if isinstance(model, str | os.PathLike) or (
        kind.__name__ == "ModelProto" and kind.__module__.partition(".")[0].startswith("onnx")
    ):
        return _load_onnx(model, shapes, loops)
    raise ModelError(
        f"cannot load a model from {kind.__module__}.{kind.__qualname__}; give the path of an .onnx or .pt2 file, "
        f"an onnx.ModelProto, a Relax IRModule or a torch.export.ExportedProgram"
    )


def _load_onnx(model: Any, shapes: Shapes | None, loops: bool) -> tvm.IRModule:
    from .onnx.convert_opset import convert_opset
    from .onnx.fold import fold_onnx
    from .onnx.importer import import_onnx
    from .onnx.lower.functions import expand_functions
    from .onnx.lower.operators import lower_missing
    from .onnx.lower.recurrence.loops import unroll_loops
    from .onnx.lower.recurrence.recurrent import expand_recurrent
    from .onnx.read import read_onnx
    from .onnx.shapes import fix_input_shapes

    proto = read_onnx(model)
    fix_input_shapes(proto, shapes)
    try:
        proto = convert_opset(proto)
        fold_onnx(proto)
        while (
            unroll_loops(proto, keep=loops)
            or expand_recurrent(proto, loops=loops)
            or lower_missing(proto)
            or expand_functions(proto)
        ):
            fold_onnx(proto)
        return import_onnx(proto)
    except RammerError:
        raise
    except Exception as error:  # a model that says what onnx's checker should not have let pass
        raise ModelError(f"the ONNX model cannot be understood: {first_line(error)}; export it again") from error
