"""Long loops of functions that are left to stock TVM, walked by the workers as the lanes of a program are.

The rounds of such a loop depend on nothing of each other, so any worker may walk any of them, and each element is what
one thread makes of it. Where a process has no workers, the caller walks all of them.
"""

from collections.abc import Sequence

import tvm
import tvm_ffi
from tvm import ir, tirx
from tvm.ir import Expr
from tvm.script import tirx as T
from tvm.tirx.buffer import BufferType

from ...device import DeviceSpec
from ...kernel import SPREAD
from ..arrays import pointer_variable
from .interpreter import pointer_at
from .launch import environment_text
from .pipeline import SMALL_ARRAYS
from .workers import client_text, establish, function_of, plain_functions

_PARAMETERS = {"environment": "handle", "lane": "int32", "bell": "handle"}
MOST_LANES = 16
"""Of a loop: some for each worker, so that one that is held up holds up little."""

_LAUNCH = """
declare i32 @{name}(ptr, i32, ptr, ptr)
@{name}_begin = internal constant [{lanes} x i32] zeroinitializer
define internal i32 @{name}_launch(i32 %worth, ptr %environment{parameters}) {{
entry:
  %row = alloca i32
{stores}
  %pays = icmp ne i32 %worth, 0
  br i1 %pays, label %together, label %next
together:
  %ran = call i1 @rammer_run(ptr @{name}, ptr %environment, ptr @{name}_begin, i32 {lanes})
  br i1 %ran, label %done, label %next
next:
  %lane = phi i32 [ 0, %entry ], [ 0, %together ], [ %after, %next ]
  %walked = call i32 @{name}(ptr %environment, i32 %lane, ptr %row, ptr null)
  %after = add i32 %lane, 1
  %more = icmp slt i32 %after, {lanes}
  br i1 %more, label %next, label %done
done:
  ret i32 0
}}
"""


def spread_loops(mod: tvm.IRModule, device: DeviceSpec) -> tvm.IRModule:
    """Let the workers walk the loops that `SPREAD` marks.

    Parameters
    ----------
    mod : tvm.IRModule
        Not lowered yet.
    device : DeviceSpec
        A CPU.

    Returns
    -------
    tvm.IRModule
        `mod` itself where it has no such loop.
    """
    made = mod.clone()
    for var, func in mod.functions_items():
        walks = _walks(var.name_hint, func) if isinstance(func, tirx.PrimFunc) else {}
        if walks:
            text = client_text(device.machine) + environment_text() + "".join(walk.text() for walk in walks.values())
            made.update_func(var, _launching(func, walks, text))
            for name, walk in plain_functions({walk.name: walk.func() for walk in walks.values()}).items():
                made.update_func(name, walk)
    if len(made.functions) == len(mod.functions):
        return mod
    establish()
    return made


def _walks(name: str, func: tirx.PrimFunc) -> "dict[tirx.For, _Walk]":
    loops: list[tirx.For] = []
    if not (name.isascii() and name.isidentifier()):  # it becomes part of a text of LLVM IR
        return {}
    tvm_ffi.structural_walk(
        func.body, (tirx.For, lambda loop: loops.append(loop) if SPREAD in loop.annotations else None), order="pre"
    )
    walks = {loop: _Walk(f"{name}_walk{n}", loop) for n, loop in enumerate(loops)}
    return {loop: walk for loop, walk in walks.items() if walk.may_run_apart}


def _launching(func: tirx.PrimFunc, walks: "dict[tirx.For, _Walk]", text: str) -> tirx.PrimFunc:
    def launched(loop: tirx.For) -> tirx.Stmt:
        return _importing(text, walks[loop].launch()) if loop in walks else loop

    return func.with_body(tvm_ffi.structural_map(func.body, [(tirx.For, launched)], order="pre"))


class _Walk:
    """A loop, and the function that walks some of its rounds for each lane."""

    def __init__(self, name: str, loop: tirx.For) -> None:
        self.name, self._loop = name, loop
        known = isinstance(loop.extent, tirx.IntImm)
        self._lanes = min(MOST_LANES, int(loop.extent)) if known else MOST_LANES
        used = list(tirx.analysis.undefined_vars(loop))
        self._buffers = [var for var in used if isinstance(var.ty, BufferType)]
        sizes = [size for buffer in self._buffers for size in buffer.shape]
        seen = dict.fromkeys(var for var in used if not isinstance(var.ty, BufferType))
        self._numbers = list(seen | dict.fromkeys(v for size in sizes for v in tirx.analysis.undefined_vars(size)))

    @property
    def may_run_apart(self) -> bool:
        """Whether an environment can hold all that the loop reads: addresses where arrays begin, and indices."""
        plain = all(not buffer.strides and _is_zero(buffer.elem_offset) for buffer in self._buffers)
        return plain and all(str(number.ty.dtype) == "int64" for number in self._numbers)

    def launch(self) -> list[tirx.Stmt]:
        """What takes the place of the loop: numbers are written into the environment, and arrays are given.

        Where there are too few rounds, the caller walks all lanes.
        """
        arrays, length = len(self._buffers), len(self._buffers) + len(self._numbers)
        environment = tirx.decl_buffer((length,), "int64", "environment")
        known = isinstance(self._loop.extent, tirx.IntImm)
        worth = tirx.IntImm("bool", True) if known else self._loop.extent >= self._loop.annotations[SPREAD]
        given = [tirx.Cast("int32", worth), environment.data, *(buffer.data for buffer in self._buffers)]
        return [
            tirx.AllocBuffer(environment),
            *(tirx.BufferStore(environment, n, [i]) for i, n in enumerate(self._numbers, arrays)),
            tirx.Evaluate(T.call_extern("int32", f"{self.name}_launch", *given)),
        ]

    def text(self) -> str:
        """What is called, as LLVM IR."""
        places = range(len(self._buffers))
        store = "  %at{0} = getelementptr i64, ptr %environment, i64 {0}\n  store ptr %p{0}, ptr %at{0}"
        return _LAUNCH.format(
            name=self.name, lanes=self._lanes, parameters="".join(f", ptr %p{i}" for i in places),
            stores="\n".join(store.format(i) for i in places),
        )  # fmt: skip

    def func(self) -> tirx.PrimFunc:
        """The function that walks a lane, as a program's interpreter does: one without waits."""
        environment, lane, bell = (tirx.Var(n, t) for n, t in _PARAMETERS.items())
        place_at = pointer_variable("place", "int32")
        place = tirx.decl_buffer((1,), "int32", "place", data=place_at)
        statements: list[tirx.Stmt] = []
        for i, number in enumerate(self._numbers, len(self._buffers)):
            statements.append(tirx.Bind(number, T.call_extern("int64", "rammer_number", environment, i)))
        arrays: dict[tirx.Var, tirx.Var] = {}
        for i, buffer in enumerate(self._buffers):
            pointer = pointer_variable(buffer.name, str(buffer.dtype))
            arrays[buffer] = tirx.decl_buffer(buffer.shape, str(buffer.dtype), buffer.name, data=pointer)
            statements.append(tirx.Bind(pointer, pointer_at(environment, i, pointer)))
            statements.append(tirx.DeclBuffer(arrays[buffer], data=pointer))
        extent, of_lane = self._loop.extent, tirx.Cast("int64", lane)
        first, end, k = (tirx.Var(name, "int64") for name in ("first", "end", "k"))
        renamed = {**arrays, self._loop.loop_var: first + k}
        body = tvm_ffi.structural_map(self._loop.body, (tirx.Var, lambda var: renamed.get(var, var)), order="post")
        statements += [
            tirx.Bind(first, tirx.truncdiv(of_lane * extent, self._lanes)),
            tirx.Bind(end, tirx.truncdiv((of_lane + 1) * extent, self._lanes)),
            tirx.For(k, tirx.IntImm("int64", 0), end - first, tirx.ForKind.SERIAL, body),
            tirx.DeclBuffer(place, data=place_at),
            tirx.BufferStore(place, -1, [0]),
        ]
        func = function_of([environment, lane, place_at, bell], [_importing(environment_text(), statements)])
        return func.with_attrs({"tirx.noalias": True, SMALL_ARRAYS: True})


def _importing(text: str, statements: Sequence[tirx.Stmt]) -> tirx.Stmt:
    """Statements that call functions of a text of LLVM IR."""
    body = statements[0] if len(statements) == 1 else tirx.SeqStmt(list(statements))
    return tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), body)


def _is_zero(offset: Expr | None) -> bool:
    return offset is None or (isinstance(offset, tirx.IntImm) and int(offset) == 0)
