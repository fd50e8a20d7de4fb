"""The interpreter of an rProgram on a CPU: one call walks a lane of the tables as far as its waits allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tvm import ir, tirx
from tvm.script import tirx as T

from ...ir import ITEM_BYTES, RProgram
from ..arrays import array_bytes, pointer_variable
from ..calls import CallSignature, pointer
from ..layout import FIRST_EXTERNAL, WORKSPACE, Layout
from ..run_steps import conditions_at, steps_of_run
from ..tables import FIRST, ROW, RUN, SIGNAL, WAIT, Tables
from .calls import call_rtask
from .workers import function_of

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


def build_interpreter(program: RProgram, layout: Layout, tables: Tables, memory: Memory) -> tirx.PrimFunc:
    """Build the interpreter.

    Parameters
    ----------
    program : RProgram
        Says how often a lane is walked, and where that is an input.
    layout : Layout
    tables : Tables
    memory : Memory

    Returns
    -------
    tirx.PrimFunc
        Parameters: the environment (a pointer to each segment and table), the number of the lane, a pointer to the row
        at which to go on, and the bell that signals ring. Then the row is that of a wait that is not over, or -1 at the
        lane's end; in step k it is counted from k times one more than all rows, for a lane without rows may begin
        behind the last. It returns zero.
    """
    return _Interpreter(program, layout, tables, memory).build()


class _Interpreter:
    def __init__(self, program: RProgram, layout: Layout, tables: Tables, memory: Memory) -> None:
        self._layout, self._tables, self._memory = layout, tables, memory
        self._steps, self._rows = program.steps, len(tables.code)
        self._trip_count, self._conditions = program.graph.trip_count, conditions_at(program, layout)
        self._steps_told = steps_of_run(program, layout, self._first_of)
        self._run_steps = tirx.Var("run_steps", "int32")
        self._pointers = [pointer_variable(b.name, str(b.dtype)) for b in (*memory.segments, *memory.plan)]
        self._views: dict[tuple[int, str], tirx.Buffer] = {}
        self._lane, self._row, self._k = (tirx.Var(name, "int32") for name in ("lane", "row", "k"))
        self._bell, self._place_at = tirx.Var("bell", "handle"), pointer_variable("place", "int32")
        self._place = tirx.decl_buffer((1,), "int32", "place", data=self._place_at)

    def build(self) -> tirx.PrimFunc:
        begin, first, stamps = self._memory.plan[0], tirx.Var("first", "int32"), self._memory.stamps_at
        environment = tirx.Var("environment", "handle")
        pointers = [tirx.Bind(p, pointer_at(environment, i, p)) for i, p in enumerate(self._pointers)]
        step, begin_stamp = self._step(), []
        if stamps is not None:
            begun = self._stamp(stamps // 8 + self._rows * self._steps + self._lane)
            begin_stamp = [tirx.IfThenElse(first == begin[self._lane], begun, None)]
        statements = [
            *pointers,
            *self._declarations(),
            tirx.Bind(first, self._place[0]),
            *begin_stamp,
            *self._walk(first, step),
            tirx.BufferStore(self._place, -1, [0]),
        ]
        func = function_of([environment, self._lane, self._place_at, self._bell], statements)
        # It writes through no pointer that another one equals. If it did not say so, TVM would not tell LLVM that the
        # pointers of rTasks are distinct either.
        for key in ("s_tir", "tirx.is_scheduled", "tirx.noalias"):
            func = func.with_attr(key, True)
        return func

    def _walk(self, first: tirx.Var, step: tirx.Stmt) -> list[tirx.Stmt]:
        """All rows of the lane from the first on; those of each step again."""
        begin, end = self._memory.plan[0][self._lane], self._memory.plan[0][self._lane + 1]
        if self._steps == 1:
            return [tirx.For(self._row, first, end - first, tirx.ForKind.SERIAL, step)]
        step_0, row, done = (tirx.Var(name, "int32") for name in ("first_step", "first_row", "done"))
        from_row = tirx.Var("from_row", "int32")
        # Loops that begin at 0: TVM moves others there, and forgets the bounds of the loop within.
        body = [
            tirx.Bind(self._k, step_0 + done),
            tirx.Bind(from_row, tirx.Select(done == 0, row, begin)),
            tirx.For(self._row, from_row, end - from_row, tirx.ForKind.SERIAL, step),
        ]
        return [
            tirx.Bind(step_0, tirx.truncdiv(first, self._rows + 1)),
            tirx.Bind(row, tirx.truncmod(first, self._rows + 1)),
            tirx.Bind(self._run_steps, self._steps_told),
            tirx.For(done, 0, self._run_steps - step_0, tirx.ForKind.SERIAL, tirx.SeqStmt(body)),
        ]

    def _first_of(self, segment: int) -> ir.Expr:
        buffer = self._memory.segments[segment]
        return buffer[(0,) * len(buffer.shape)]

    def _step(self) -> tirx.Stmt:
        """Execute one row of the code: a wait, a signal or a run."""
        leave = [
            tirx.BufferStore(self._place, self._counted(self._rows + 1), [0]),
            tirx.Return(tirx.IntImm("int32", 0)),
        ]
        arrivals = self._word(2)
        if self._steps > 1:
            arrivals = arrivals * (self._k + 1 - self._word(3))
        waits = T.call_extern("bool", "rammer_waits", self._counter(), arrivals, self._bell)
        branches = [
            (WAIT, tirx.IfThenElse(waits, tirx.SeqStmt(leave), None)),
            (SIGNAL, tirx.Evaluate(T.call_extern("void", "rammer_signal", self._counter(), self._bell))),
            *((RUN + n, self._run(signature)) for n, signature in enumerate(self._tables.signatures)),
        ]
        if self._conditions is not None:
            end = tirx.SeqStmt([tirx.BufferStore(self._place, -1, [0]), leave[1]])
            goes_on = self._memory.segments[self._conditions][self._k]
            step = tirx.IfThenElse(waits, tirx.SeqStmt(leave), tirx.IfThenElse(tirx.Not(goes_on), end, None))
            branches.append((RUN + len(self._tables.signatures), step))
        return _switch(self._in_step(0, FIRST), [(kind, self._stamped(kind, step)) for kind, step in branches])

    def _stamped(self, kind: int, step: tirx.Stmt) -> tirx.Stmt:
        """Note the time after a step, but before a signal: whoever waits for it goes on later."""
        if self._memory.stamps_at is None:
            return step
        stamp = self._stamp(self._memory.stamps_at // 8 + self._counted(self._rows))
        return tirx.SeqStmt([stamp, step] if kind == SIGNAL else [step, stamp])

    def _run(self, signature: CallSignature) -> tirx.Stmt:
        """Some rTasks of an operator, one after another."""
        index, function, layout = tirx.Var("i", "int32"), signature.function, self._layout
        args = []
        for i, dtype in enumerate(function.dtypes):
            word, at = self._argument(i), signature.offsets[i]
            offset = 0 if at is None else self._argument(at)
            if (stride := signature.strides[i]) is not None:
                word, offset = self._moved(stride, signature.segments[i], word, offset)
            args.append(pointer(signature.segments[i], word, partial(self._element, dtype), _select, offset))
        for (_, offset), (_, dtype) in zip(function.scratch_offsets(), function.scratch, strict=True):
            # Counted in elements, since bytes leave 32 bits earlier.
            first, arena = ((n // ITEM_BYTES[dtype]) for n in (layout.arena_offset + offset, layout.arena_bytes))
            args.append(self._element(dtype, WORKSPACE, first + self._lane * arena))
        rtask = call_rtask(function, *args, self._word(2) + index * self._word(4))
        return tirx.For(index, 0, self._word(3), tirx.ForKind.SERIAL, tirx.Evaluate(rtask))

    def _moved(
        self, stride: int, segments: Sequence[int], word: ir.Expr, offset: ir.Expr | int
    ) -> tuple[ir.Expr, ir.Expr | int]:
        """The word and the offset of a pointer in this step."""
        width = self._tables.width
        ahead, bits = self._argument(stride + width), self._argument(stride + 2 * width)
        slot = self._k + ahead
        if self._trip_count is not None:
            slot = slot + self._argument(stride + 3 * width) * (self._steps - self._run_steps)
        move = (slot & bits) * self._argument(stride)
        return (word, offset + move) if segments[0] >= FIRST_EXTERNAL else (word + move, offset)

    def _argument(self, i: int) -> ir.Expr:
        """A word of the operator's row in the arguments."""
        return self._memory.plan[2][self._in_step(1, FIRST + 1) * self._tables.arguments.shape[1] + i]

    def _counted(self, a_step: int) -> ir.Expr:
        """The number of the row, counted through all steps of `a_step` rows each."""
        return self._row if self._steps == 1 else self._k * a_step + self._row

    def _in_step(self, word: int, in_step_0: int) -> ir.Expr:
        """A word of the row; in step 0 it lies at another place."""
        if self._steps == 1:
            return self._word(word)
        return self._word(tirx.Select(self._k == 0, in_step_0, word))

    def _word(self, k: ir.Expr | int) -> ir.Expr:
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
            tirx.DeclBuffer(self._place, data=self._place_at),
        ]


def pointer_at(environment: tirx.Var, index: int, variable: tirx.Var) -> ir.Expr:
    """What the environment holds for a variable; `T.call_extern` returns no pointers with a type."""
    loaded = T.call_extern("handle", "rammer_pointer", environment, index)
    return ir.Call(loaded.op, loaded.args, ret_ty=variable.ty)


def _select(condition: ir.Expr, one: ir.Expr, other: ir.Expr) -> ir.Expr:
    return T.call_extern("handle", "rammer_select", condition, one, other)


def _switch(value: ir.Expr, branches: Sequence[tuple[int, tirx.Stmt]]) -> tirx.Stmt:
    """Choose a branch by a binary tree of comparisons, which LLVM turns into a jump table."""
    if len(branches) == 1:
        return branches[0][1]
    middle = len(branches) // 2
    return tirx.IfThenElse(
        value < branches[middle][0], _switch(value, branches[:middle]), _switch(value, branches[middle:])
    )
