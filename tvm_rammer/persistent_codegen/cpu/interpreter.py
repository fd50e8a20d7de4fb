"""The interpreter of an rProgram on a CPU: one call walks through one lane of the tables."""

import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import ir, tirx
from tvm.ir import GlobalVar, PrimType
from tvm.script import tirx as T

from ...ir import ITEM_BYTES
from ..arrays import array_bytes, pointer_variable
from ..layout import WORKSPACE, Layout
from ..tables import ROW, RUN, SIGNAL, WAIT, CallSignature, Tables, pointer
from .stamps import CLOCK

COUNTER_WORDS = 16
"""Each counter has a cache line of its own, so that signals do not disturb other waits."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the interpreter gets pointers to.

    Parameters
    ----------
    segments : tuple of tirx.Buffer
        As `Layout` numbers them.
    plan : tuple of tirx.Buffer
        `begin`, `code` and `arguments` of the tables.
    counters_at : int
        Byte of the workspace at which the events' counters begin.
    stamps_at : int or None
        Byte of the workspace at which the stamps begin, if there are any.
    """

    segments: tuple[tirx.Buffer, ...]
    plan: tuple[tirx.Buffer, ...]
    counters_at: int
    stamps_at: int | None


def build_interpreter(
    layout: Layout, tables: Tables, memory: Memory, functions: Mapping[str, GlobalVar]
) -> tirx.PrimFunc:
    """Build the interpreter.

    Parameters
    ----------
    layout : Layout
    tables : Tables
    memory : Memory
    functions : mapping of str to GlobalVar
        The name under which the module holds each rTask function.

    Returns
    -------
    tirx.PrimFunc
        Parameters: a pointer to each segment and table, and the number of the lane.
    """
    return _Interpreter(layout, tables, memory, functions).build()


class _Interpreter:
    def __init__(self, layout: Layout, tables: Tables, memory: Memory, functions: Mapping[str, GlobalVar]) -> None:
        self._layout, self._tables, self._memory, self._functions = layout, tables, memory, functions
        self._pointers = [pointer_variable(b.name, str(b.dtype)) for b in (*memory.segments, *memory.plan)]
        self._views: dict[tuple[int, str], tirx.Buffer] = {}
        self._lane, self._row = tirx.Var("lane", "int32"), tirx.Var("row", "int32")

    def build(self) -> tirx.PrimFunc:
        begin, first = self._memory.plan[0], tirx.Var("first", "int32")
        text = importlib.resources.files(__package__).joinpath("sync.ll").read_text(encoding="utf-8")
        step, begin_stamp = self._step(), []
        if self._memory.stamps_at is not None:
            stamps, text = self._memory.stamps_at // 8, text + CLOCK
            step = tirx.SeqStmt([step, self._stamp(stamps + self._row)])
            begin_stamp = [self._stamp(stamps + len(self._tables.code) + self._lane)]
        walk = tirx.For(self._row, first, begin[self._lane + 1] - first, tirx.ForKind.SERIAL, step)
        interpreter = tirx.SeqStmt([*self._declarations(), tirx.Bind(first, begin[self._lane]), *begin_stamp, walk])
        body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), interpreter)
        func = tirx.PrimFunc([*self._pointers, self._lane], body)
        for key in ("s_tir", "tirx.is_scheduled", "rammer.rtask"):
            func = func.with_attr(key, True)
        return func

    def _step(self) -> tirx.Stmt:
        """What one row of the code asks for."""
        branches = [
            (WAIT, tirx.Evaluate(T.call_extern("void", "rammer_wait", self._counter(), self._word(2)))),
            (SIGNAL, tirx.Evaluate(T.call_extern("void", "rammer_signal", self._counter()))),
            *((RUN + n, self._run(signature)) for n, signature in enumerate(self._tables.signatures)),
        ]
        return _switch(self._word(0), branches)

    def _run(self, signature: CallSignature) -> tirx.Stmt:
        """Some rTasks of an operator, one after another."""
        index, function, layout = tirx.Var("i", "int32"), signature.function, self._layout
        arguments, width = self._memory.plan[2], self._tables.arguments.shape[1]
        args = []
        for k, dtype in enumerate(function.dtypes):
            word = arguments[self._word(1) * width + k]
            args.append(pointer(signature.segments[k], word, partial(self._element, dtype), _select))
        for (_, offset), (_, dtype) in zip(function.scratch_offsets(), function.scratch, strict=True):
            # Counted in elements, since bytes leave 32 bits earlier.
            first, arena = ((n // ITEM_BYTES[dtype]) for n in (layout.arena_offset + offset, layout.arena_bytes))
            args.append(self._element(dtype, WORKSPACE, first + self._lane * arena))
        rtask = call(self._functions[function.name], *args, self._word(2) + index * self._word(4))
        return tirx.For(index, 0, self._word(3), tirx.ForKind.SERIAL, tirx.Evaluate(rtask))

    def _word(self, k: int) -> ir.Expr:
        return self._memory.plan[1][self._row * ROW + k]

    def _counter(self) -> ir.Expr:
        at = self._memory.counters_at // ITEM_BYTES["int32"] + self._word(1) * COUNTER_WORDS
        return self._element("int32", WORKSPACE, at)

    def _stamp(self, at: ir.Expr) -> tirx.Stmt:
        return tirx.BufferStore(self._view(WORKSPACE, "int64"), T.call_extern("int64", "rammer_now"), [at])

    def _element(self, dtype: str, segment: int, at: ir.Expr | int) -> ir.Expr:
        return T.address_of(self._view(segment, dtype)[at])

    def _view(self, segment: int, dtype: str) -> tirx.Buffer:
        """A segment as a flat array of some element type."""
        if (segment, dtype) not in self._views:
            shape = (max(1, array_bytes(self._memory.segments[segment]) // ITEM_BYTES[dtype]),)
            view = tirx.decl_buffer(shape, dtype, f"view{segment}_{dtype}", data=self._pointers[segment])
            self._views[segment, dtype] = view
        return self._views[segment, dtype]

    def _declarations(self) -> list[tirx.Stmt]:
        """Of all buffers that the interpreter uses; known once its body is."""
        buffers = zip((*self._memory.segments, *self._memory.plan), self._pointers, strict=True)
        return [
            *(tirx.DeclBuffer(b, data=p) for b, p in buffers),
            *(tirx.DeclBuffer(view, data=self._pointers[s]) for (s, _), view in self._views.items()),
        ]


def call(function: GlobalVar, *args: ir.Expr) -> ir.Expr:
    """Call a function that returns nothing."""
    return ir.Call(function, list(args), ret_ty=PrimType("void"))


def _select(condition: ir.Expr, one: ir.Expr, other: ir.Expr) -> ir.Expr:
    return T.call_extern("handle", "rammer_select", condition, one, other)


def _switch(value: ir.Expr, branches: Sequence[tuple[int, tirx.Stmt]]) -> tirx.Stmt:
    """Choose by a binary tree of comparisons, of which LLVM makes a jump table."""
    if len(branches) == 1:
        return branches[0][1]
    middle = len(branches) // 2
    return tirx.IfThenElse(
        value < branches[middle][0], _switch(value, branches[:middle]), _switch(value, branches[middle:])
    )
