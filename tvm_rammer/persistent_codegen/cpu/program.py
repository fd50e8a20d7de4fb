"""An rProgram as one function for a CPU: it resets the counters, and lets the workers walk all lanes.

The plan needs no worker of its own for each vEU: who would wait takes a lane that nobody is on, so one worker runs a
program as well as many.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
from tvm import ir, tirx
from tvm.ir import GlobalVar
from tvm.script import tirx as T

from ...device import DeviceSpec
from ...ir import ITEM_BYTES, RProgram, align
from ...kernel import Pack, RTaskFunction
from ..arrays import array_bytes, pointer_variable
from ..assembled import AssembledProgram
from ..layout import CONSTANTS, FIRST_EXTERNAL, WORKSPACE, Layout, lay_out
from ..tables import build_tables
from .calls import calls_text
from .interpreter import COUNTER_WORDS, Memory, build_interpreter
from .launch import lanes_argument, launch_text, walk
from .stamps import STAMPED
from .workers import establish

_DATA = 1
"""The field of a tensor that says where its elements are, as TVM numbers them."""

_NO_WORKERS = (
    "this code has no workers with it: it was taken out of the module that it was compiled in; "
    "export the executable of that module, or import tvm_rammer and compile here"
)


def assemble_cpu(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    packs: Sequence[Mapping[int, Pack]],
    functions: Sequence[RTaskFunction],
    device: DeviceSpec,
    variables: Mapping[str, GlobalVar],
    *,
    stamped: bool = False,
) -> AssembledProgram:
    """Make the function of an rProgram for a CPU.

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
    variables : mapping of str to GlobalVar
        The variable under which the module holds each rTask function.
    stamped : bool
        Whether to note when each instruction of each lane ends, for `read_stamps`.

    Returns
    -------
    AssembledProgram
    """
    lanes = len(program.lanes)
    arena = max((f.scratch_bytes for f in functions), default=0)
    layout = lay_out(program, values, packs, arenas=lanes, arena_bytes=arena)
    tables = build_tables(program, layout, functions)
    counters_at = layout.workspace_bytes
    stamps_at = counters_at + max(1, program.num_events) * COUNTER_WORDS * 4
    # One for each instruction of each lane in each step; then one for each lane's beginning.
    num_stamps = len(tables.code) * program.steps + lanes if stamped else 0
    workspace_bytes = stamps_at + num_stamps * 8
    plan = (tables.begin, tables.code.reshape(-1), tables.arguments.reshape(-1))
    constants = (layout.constants, np.concatenate([_whole_lines(table) for table in plan]))

    segments = [_buffer("constants", constants[0]), tirx.decl_buffer((workspace_bytes,), "uint8", "workspace")]
    for i, b in enumerate((*layout.inputs, *layout.outputs)):
        buffer = program.graph.buffers[b]
        segments.append(tirx.decl_buffer(buffer.shape, buffer.dtype, f"arg{i}"))
    parts = tuple(_buffer(n, a) for n, a in zip(("begin", "code", "arguments"), plan, strict=True))
    memory = Memory(tuple(segments), parts, counters_at, stamps_at if stamped else None)
    interpreter = build_interpreter(program, layout, tables, memory)
    report = _report(program, segments[WORKSPACE], stamps_at, num_stamps) if stamped else []
    sizes = (layout.constants.nbytes, workspace_bytes)
    launch = launch_text(program.name, len(segments) + len(parts), device.machine, sizes, stamped=stamped)
    text = launch + calls_text(functions)
    main = _main(program, layout, memory, _buffer("plan", constants[1]), text, report)
    establish()
    used = {variables[f.name]: f.func for f in functions}
    return AssembledProgram(
        name=program.name,
        func=main,
        helpers={**walk(program.name, interpreter), **used},
        inputs=layout.inputs,
        outputs=layout.outputs,
        constants=constants,
        workspace_bytes=workspace_bytes,
    )


def _whole_lines(table: np.ndarray) -> np.ndarray:
    """A table filled up to a multiple of what TVM takes for granted of the address of a buffer."""
    return np.pad(table, (0, align(table.nbytes) // table.itemsize - table.size))


def _buffer(name: str, array: np.ndarray) -> tirx.Buffer:
    return tirx.decl_buffer(array.shape, str(array.dtype), name)


def _main(
    program: RProgram,
    layout: Layout,
    memory: Memory,
    plan: tirx.Buffer,
    text: str,
    afterwards: Sequence[tirx.Stmt],
) -> tirx.PrimFunc:
    """The function that TVM calls: it resets the counters, and launches all lanes.

    TVM checks each tensor that a function is called with, and that takes more code than all the rest. What the virtual
    machine makes for this very function needs no check: it comes as an address of a tensor, and only inputs as
    buffers. The tables are one parameter.
    """
    segments = memory.segments
    sizes = [align(array_bytes(table)) // ITEM_BYTES["int32"] for table in memory.plan]
    starts = accumulate(sizes[:-1], initial=0)
    tables = [T.address_of(plan[start]) for start in starts]
    given = [*(b.data for b in segments), *tables]
    first, words = memory.counters_at // 4, max(1, program.num_events) * COUNTER_WORDS
    counters = tirx.decl_buffer((first + words,), "int32", "counters", data=segments[WORKSPACE].data)
    i, lanes = tirx.Var("i", "int32"), tirx.IntImm("int32", lanes_argument(program))
    launched = T.call_extern("bool", f"{program.name}_launch", *given, tables[0], lanes)
    first_output = FIRST_EXTERNAL + len(layout.inputs)
    inputs, outputs = segments[FIRST_EXTERNAL:first_output], segments[first_output:]
    own = [segments[CONSTANTS], plan, *outputs, segments[WORKSPACE]]
    tensors = [tirx.Var(buffer.name, "handle") for buffer in own]
    statements = [
        *(s for buffer, tensor in zip(own, tensors, strict=True) for s in _unchecked(buffer, tensor)),
        tirx.DeclBuffer(counters, data=segments[WORKSPACE].data),
        tirx.For(i, 0, words, tirx.ForKind.SERIAL, tirx.BufferStore(counters, 0, [first + i])),
        tirx.AssertStmt(launched, ir.StringImm("RuntimeError"), [ir.StringImm(_NO_WORKERS)]),
        *afterwards,
    ]
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), tirx.SeqStmt(statements))
    func = tirx.PrimFunc([*inputs, *tensors], body)
    attrs = {"global_symbol": program.name, "tirx.noalias": True, "s_tir": True, "tirx.is_scheduled": True}
    for key, value in attrs.items():
        func = func.with_attr(key, value)
    return func


def _unchecked(buffer: tirx.Buffer, tensor: tirx.Var) -> list[tirx.Stmt]:
    """Say that a buffer lies where the elements of a tensor are."""
    pointer = pointer_variable(buffer.name, str(buffer.dtype))
    field = tirx.tvm_struct_get(tensor, 0, _DATA, "handle")
    address = ir.Call(field.op, field.args, ret_ty=pointer.ty)
    return [tirx.Bind(pointer, address), tirx.DeclBuffer(buffer, data=pointer)]


def _report(program: RProgram, workspace: tirx.Buffer, stamps_at: int, count: int) -> list[tirx.Stmt]:
    """Call `STAMPED` with the address of the stamps, for `collect_stamps`."""
    where = T.address_of(workspace[stamps_at])
    return [tirx.Evaluate(T.call_packed(STAMPED, program.name, where, tirx.IntImm("int64", count)))]
