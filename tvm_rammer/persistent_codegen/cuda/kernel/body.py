"""What the pieces of the kernel refer to: its buffers and indices, the row that it is at."""

from collections.abc import Mapping
from dataclasses import dataclass

from tvm import tirx
from tvm.ir import Expr, GlobalVar
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from .. import sync
from ..rows import WARP, RowForm


@dataclass(frozen=True, slots=True)
class Body:
    """The kernel, as its pieces see it.

    Parameters
    ----------
    begin, rows, state : tirx.Buffer
        The plan (rows.py, state.py).
    form : RowForm
    width : int
        How many buffers and numbers an operator has, at most.
    steps : int
        How many there may be in a run.
    run_steps : Expr or None
        How many there are, where an input says so.
    conditions : tirx.Buffer or None
        Of each step whether there is another one, where steps say so.
    exits : int or None
        The counter of the event that says that a step has its condition.
    views, arena : mapping
        Arrays by segment and element type; those in the block's shared memory by element type.
    callees : mapping of str to GlobalVar
    threads : int
        Of a block.
    veu, tid : tirx.Var
        The index of the block, and of the thread in it.
    many : bool
        Whether there are many functions (`build.MANY_FUNCTIONS`).
    watchdog : int or None
        As `build_kernel`.
    report : int
        Where in the state the watchdog's report begins.
    """

    begin: tirx.Buffer
    rows: tirx.Buffer
    state: tirx.Buffer
    form: RowForm
    width: int
    steps: int
    run_steps: Expr | None
    conditions: tirx.Buffer | None
    exits: int | None
    views: Mapping[tuple[int, str], tirx.Buffer]
    arena: Mapping[str, tirx.Buffer]
    callees: Mapping[str, GlobalVar]
    threads: int
    veu: tirx.Var
    tid: tirx.Var
    many: bool
    watchdog: int | None
    report: int

    @property
    def varies(self) -> bool:
        """Whether runs may differ in their number of steps."""
        return self.run_steps is not None or self.conditions is not None

    def counter(self, word: int) -> Expr:
        """A pointer to a word of the state."""
        return T.address_of(self.state[word])


@dataclass(frozen=True, slots=True)
class Row:
    """Registers of a thread.

    Parameters
    ----------
    here, following : tirx.Buffer
        Its words of this row, and of the next.
    target, ahead : tirx.Buffer
        What the counter is to reach that it looks at, and how far ahead of that it was seen.
    waits : tirx.Buffer
        Whether the row has to look.
    zero : Expr
        A 0.
    """

    here: tirx.Buffer
    following: tirx.Buffer
    target: tirx.Buffer
    ahead: tirx.Buffer
    waits: tirx.Buffer
    zero: Expr

    def word(self, number: int) -> Expr:
        """A word of this row, for all threads."""
        return sync.word(self.here[number // WARP], number % WARP)


def registers(name: str, count: int, dtype: str = "int32") -> tirx.Buffer:
    """An array of a thread's own."""
    return IRBuilder.name(name, T.alloc_buffer((count,), dtype, scope="local", layout=None))


def bind(name: str, value: Expr) -> tirx.Var:
    """Compute a value here, under a name."""
    return IRBuilder.name(name, T.bind(value))
