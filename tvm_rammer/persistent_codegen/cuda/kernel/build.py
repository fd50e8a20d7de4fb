"""The persistent kernel as TIR: an interpreter of the plan's rows."""

from collections.abc import Mapping, Sequence

import numpy as np
from tvm import tirx
from tvm.ir import GlobalVar
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ....ir import RProgram
from ...layout import CONSTANTS, KEPT, Layout
from ...run_steps import conditions_at, count_at, steps_of_run
from ...tables import Tables
from ..kept import copy_slices
from ..memory import declare_arena, declare_parameters, declare_views
from ..rows import RowForm
from ..state import counter_of, first_report
from .body import Body, bind
from .walk import walk

_MIN_BLOCKS = "tirx.launch_bounds_min_blocks_per_sm"

MANY_FUNCTIONS = 20
"""With more of them, what they make of a thread's index is computed in each row (`sync.thread`), some 20 cycles; with
fewer it is kept in registers."""


def build_kernel(
    program: RProgram,
    layout: Layout,
    tables: Tables,
    form: RowForm,
    constants: Sequence[np.ndarray],
    callees: Mapping[str, GlobalVar],
    threads: int,
    shared_bytes: int,
    blocks_per_unit: int,
    watchdog: int | None,
) -> tirx.PrimFunc:
    """Build the persistent kernel of a program.

    Parameters
    ----------
    program : RProgram
    layout : Layout
    tables : Tables
    form : RowForm
    constants : sequence of numpy.ndarray
        The arrays named in `memory.CONSTANT_NAMES`.
    callees : mapping of str to GlobalVar
        The rTask functions by name.
    threads, shared_bytes : int
        Block size, and shared memory of a block: its arena, and what it keeps of constants.
    blocks_per_unit : int
        How many must be resident on each unit: a thread gets no more registers than that leaves it. Where nothing is
        said, ptxas may spill some for the sake of one block more.
    watchdog : int or None
        After how many times 2^20 cycles a wait gives up.

    Returns
    -------
    tirx.PrimFunc
        Parameters: inputs, `constants`, outputs, workspace.
    """
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name(program.name)
        T.func_attr(
            {
                "global_symbol": program.name,
                "tirx.noalias": True,
                "tirx.is_scheduled": True,
            }
        )
        segments, plan = declare_parameters(program, layout, constants)
        with (
            T.thread_binding(len(program.lanes), thread="blockIdx.x") as veu,
            T.thread_binding(threads, thread="threadIdx.x") as tid,
            T.attr(tirx.IntImm("int32", 0), _MIN_BLOCKS, blocks_per_unit),
        ):
            IRBuilder.name("veu", veu)
            IRBuilder.name("tid", tid)
            arena = declare_arena(tables.signatures, shared_bytes)
            count, conditions = count_at(program, layout), conditions_at(program, layout)
            views = declare_views(segments, tables.signatures, [at for at in (count, conditions) if at is not None])
            if program.kept_bytes:
                constants_view = next(view for (segment, _), view in views.items() if segment == CONSTANTS)
                copy_slices(plan["begin"], constants_view, arena, veu, len(program.lanes))
            run_steps = steps_of_run(program, layout, lambda segment: views[segment, "int32"][0])
            walk(
                Body(
                    **plan,
                    form=form,
                    width=tables.width,
                    steps=program.steps,
                    run_steps=None if count is None else bind("run_steps", run_steps),
                    conditions=None if conditions is None else views[conditions, "bool"],
                    exits=None if program.exit is None else counter_of(program.exit),
                    views=views | {(KEPT, dtype): array for dtype, array in arena.items()},
                    arena=arena,
                    callees=callees,
                    threads=threads,
                    veu=veu,
                    tid=tid,
                    many=len(tables.signatures) > MANY_FUNCTIONS,
                    watchdog=watchdog,
                    report=first_report(program),
                ),
                tables.signatures,
                len(program.lanes),
            )
    return builder.get()
