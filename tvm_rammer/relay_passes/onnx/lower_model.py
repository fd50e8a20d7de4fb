"""An ONNX model with static shapes, rewritten until TVM's frontend understands it, and imported."""

import onnx
import tvm

from .control.outline import is_control, outline
from .fold import fold_onnx
from .importer import check_supported, import_onnx
from .lower.functions import expand_functions
from .lower.loops import unroll_loops
from .lower.operators import lower_missing
from .lower.recurrent import unroll_recurrent
from .sequences import resolve_sequences


def lower_and_import(model: onnx.ModelProto) -> tvm.IRModule:
    """Import a model; what data decide in it becomes functions of the module, each imported in the same way.

    Parameters
    ----------
    model : onnx.ModelProto
        Of an opset whose operators are known here (`convert_opset`), with static inputs; is changed.

    Raises
    ------
    UnsupportedOperatorError, ModelError
        An operator is lacking, or the model says something impossible.
    """
    called: dict[str, tvm.IRModule] = {}
    _lower(model)
    while any(map(is_control, model.graph.node)):
        check_supported(model)  # first: after an operator that is lacking no shape is known
        outline(model, called, lower_and_import)
        _lower(model)
    return import_onnx(model, called)


def _lower(model: onnx.ModelProto) -> None:
    fold_onnx(model)
    steps = (unroll_loops, resolve_sequences, unroll_recurrent, lower_missing, expand_functions)
    while any(step(model) for step in steps):
        fold_onnx(model)
