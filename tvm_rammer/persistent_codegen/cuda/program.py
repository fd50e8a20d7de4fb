"""An rProgram becomes one persistent CUDA kernel: a grid whose blocks are vEUs, each of which interprets one lane.

    block v:  copy to shared memory what lane v keeps of constants (kept.py)
              for each row (rows.py) that belongs to lane v, as often as there are steps
                warp 0 acquires what the row waits for
                block barrier, then the rTask's threads run rTask after rTask
                block barrier, then the last warp releases what the row signals

The first barrier covers both the rTasks before it on this vEU (what they wrote, and the arena they used) and
the waits since. Every block barrier lies outside of any branch on the thread index.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from tvm.ir import GlobalVar

from ...device import DeviceSpec
from ...errors import CodegenError
from ...ir import RProgram
from ...kernel import Pack, RTaskFunction
from ..assembled import AssembledProgram
from ..layout import lay_out
from ..library import variable_of
from ..share_code import share_code
from ..tables import build_tables
from .kept import build_copies
from .kernel import build_kernel
from .rows import build_rows
from .state import make_state


def assemble_cuda(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    packs: Sequence[Mapping[int, Pack]],
    functions: Sequence[RTaskFunction],
    device: DeviceSpec,
    variables: Mapping[str, GlobalVar] | None = None,
    *,
    watchdog_s: float | None = None,
) -> AssembledProgram:
    """Make the persistent kernel of an rProgram; its grid has a block for each lane.

    Parameters
    ----------
    program : RProgram
        Verified.
    values : mapping of int to numpy.ndarray
        The value of each constant buffer of its graph.
    packs : sequence of mapping
        For each operator, how its kernel wants its constant parameters laid out.
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel.
    device : DeviceSpec
        A GPU.
    variables : mapping of str to GlobalVar, optional
        Under which variable the module holds each rTask function, where several programs share them.
    watchdog_s : float, optional
        Seconds after which a wait gives up, ends the kernel and says what it waited for in the state (state.py).

    Returns
    -------
    AssembledProgram

    Raises
    ------
    CodegenError
        An rTask needs more threads or shared memory than a block of the device has.
    """
    layout = lay_out(program, values, packs)  # no arenas in the workspace: on a GPU they are shared memory
    functions = share_code(functions, program.name)
    arena_bytes = max((function.scratch_bytes for function in functions), default=0)
    tables = build_tables(program, layout, functions, arena_bytes)
    threads = max((s.function.threads for s in tables.signatures), default=device.warp)
    shared_bytes = arena_bytes + program.kept_bytes
    if shared_bytes > device.shared_per_block or threads > device.threads_per_block:
        raise CodegenError(
            f"{program.name} needs {threads} threads and {shared_bytes} bytes of shared memory a block, but "
            f"{device.name} has {device.threads_per_block} and {device.shared_per_block}: choose smaller tiles"
        )
    rtasks = {s.function.name: s.function.func for s in tables.signatures}
    callees = {name: (variables or {}).get(name) or variable_of(name, func) for name, func in rtasks.items()}
    rows = build_rows(tables, program.steps)
    begin = np.concatenate([rows.begin, build_copies(program, layout, packs, arena_bytes)])
    limit = None if watchdog_s is None else _limit(watchdog_s, device)
    blocks_per_unit = -(-len(program.lanes) // device.units)
    constants = (layout.constants, begin, rows.words.reshape(-1), make_state(program, watched=watchdog_s is not None))
    return AssembledProgram(
        name=program.name,
        func=build_kernel(
            program, layout, tables, rows.form, constants, callees, threads, shared_bytes, blocks_per_unit, limit
        ),
        helpers=MappingProxyType({callees[name]: func for name, func in rtasks.items()}),
        inputs=layout.inputs,
        outputs=layout.outputs,
        constants=constants,
        workspace_bytes=layout.workspace_bytes,
        threads=threads,
        shared_bytes=shared_bytes,
    )


def _limit(seconds: float, device: DeviceSpec) -> int:
    """A time as a watchdog counts it, in 2^20 cycles."""
    return max(1, math.ceil(seconds * device.clock_ghz * 1e9 / 2**20))
