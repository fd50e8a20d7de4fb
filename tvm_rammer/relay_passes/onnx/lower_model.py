"""An ONNX model with static shapes, rewritten until TVM's frontend understands it, and imported."""

from functools import partial
from itertools import takewhile

import onnx
import tvm

from ... import debug
from ...errors import RammerError
from ..loops.body import ROLLED_UP
from .check.nodes import check_nodes
from .check.operators import check_supported
from .compile_time import constants_of
from .control.outline import is_control, outline
from .data_sizes.as_tensors import make_tensors_of_sizes
from .fold import fold_onnx
from .importer import import_onnx
from .inline import all_nodes
from .joined.join import join_loops
from .lower.classical import CLASSICAL, ML
from .lower.functions import expand_functions
from .lower.indexing.slices import assign_by_choice
from .lower.join_chosen import join_chosen
from .lower.operators import MAY_WAIT, is_lowered, lower_missing
from .lower.quantised.pairs import join_quantised
from .lower.recurrence.cells import CELLS
from .lower.recurrence.loops import unroll_loops
from .lower.recurrence.open_steps import loop_open_steps
from .lower.recurrence.recurrent import expand_recurrent
from .roll_up.ahead import move_ahead
from .roll_up.gates import put_gates_in_blocks
from .roll_up.gemms import take_gemms_apart
from .roll_up.roll_up import roll_up
from .sequences import resolve_sequences


def check_learned(model: onnx.ModelProto) -> None:
    """Check ahead that all operators of ai.onnx.ml are known: to lower large trees beside others takes minutes.

    Raises
    ------
    UnsupportedOperatorError
        Some are lacking.
    """
    learned = (n for n in all_nodes(model.graph) if n.domain == ML and (ML, n.op_type) not in CLASSICAL)
    check_supported(learned, constants_of(model))


def lower_and_import(
    model: onnx.ModelProto,
    *,
    loops: bool = False,
    join: bool = False,
    roll: bool = False,
    data_loops: bool = False,
) -> tvm.IRModule:
    """Import a model; what data decide in it becomes functions of the module, each imported in the same way.

    Parameters
    ----------
    model : onnx.ModelProto
        Of an opset whose operators are known here (`convert_opset`), with static inputs; is changed.
    loops : bool
        Whether loops of a known length stay loops; not those within what data decide.
    join : bool
        Whether of these become one what can be one (`joined`).
    roll : bool
        Whether equal steps that the model has one by one become loops, and what needs no state is computed ahead of
        loops (`roll_up`).
    data_loops : bool
        Whether loops that data end may be loops of an rProgram.

    Raises
    ------
    UnsupportedOperatorError, ModelError
        An operator is lacking, or the model says something impossible.
    LoopError
        A loop cannot stay one.
    """
    if roll:
        fold_onnx(model)
        if (rolled := roll_up(model)) is not None:
            try:
                return _lowered(rolled, loops, join, ahead=True, data_loops=data_loops).with_attr(ROLLED_UP, True)
            except RammerError as error:
                debug.say(1, f"what the model has step by step stays so: {error}")
    return _lowered(model, loops, join, ahead=roll, data_loops=data_loops)


def _lowered(model: onnx.ModelProto, loops: bool, join: bool, *, ahead: bool, data_loops: bool) -> tvm.IRModule:
    called: dict[str, tvm.IRModule] = {}
    lower(model, loops=loops, ahead=ahead)
    while loop_open_steps(model) or any(map(is_control, model.graph.node)):
        # After an operator that is lacking no shape is known; and what comes after may be lowered once shapes are.
        before = takewhile(lambda node: not is_control(node), model.graph.node)
        check_supported(before, constants_of(model), loops=loops)
        if any(map(is_control, model.graph.node)):
            outline(model, called, partial(lower_and_import, data_loops=data_loops), keeps_loops=data_loops)
        lower(model, loops=loops, ahead=ahead)
    if any(node.op_type in MAY_WAIT for node in all_nodes(model.graph)):
        lower_missing(model, last=True)
    if join:
        join_loops(model)
    make_tensors_of_sizes(model)
    return import_onnx(model, called, loops=loops)


def lower(model: onnx.ModelProto, *, loops: bool, ahead: bool = False) -> None:
    """Replace the operators that TVM's frontend lacks, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        As `lower_and_import` takes it. What data decide remains in it.
    loops : bool
        Whether loops of a known length stay loops.
    ahead : bool
        Whether products in loops that wait for no step before are computed ahead of them (`roll_up.ahead`).

    Raises
    ------
    UnsupportedOperatorError, ModelError
        As `lower_and_import`.
    """
    join_quantised(model)
    fold_onnx(model)
    doubt = check_nodes(model, lambda node: is_lowered(node) or node.op_type in CELLS)
    join_chosen(model)
    steps = (
        partial(unroll_loops, keep=loops),
        resolve_sequences,
        assign_by_choice,
        partial(expand_recurrent, loops=loops),
        lower_missing,
        expand_functions,
        *((take_gemms_apart, put_gates_in_blocks, move_ahead) if ahead else ()),
    )
    while any(step(model) for step in steps):
        fold_onnx(model)
    if doubt is not None:
        raise doubt
