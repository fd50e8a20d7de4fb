"""RPrograms: the instructions of each vEU."""

from collections.abc import Iterator
from dataclasses import dataclass

from .graph import RGraph
from .kernel import RKernel


@dataclass(frozen=True, slots=True)
class Run:
    """Run rTasks `start, start + step, ...` (`count` of them) of an operator, one after another.

    An rTask is the smallest unit of scheduling: one tile of an operator, known by its index (Rammer, 3.1).

    Where its slices of a constant (`RKernel.slices`) stay in the vEU's own memory over all steps, `kept` is the byte of
    what the vEU keeps at which they begin, one after another; they are loaded once, before the first step.
    """

    operator: int
    start: int
    count: int
    step: int = 1
    kept: int | None = None

    def indices(self) -> range:
        """The indices of its rTasks, in order."""
        return range(self.start, self.start + self.count * self.step, self.step)


@dataclass(frozen=True, slots=True)
class Signal:
    """Add one to the counter of `event`, and release: what this vEU wrote before is visible after a wait for it."""

    event: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the counter of `event` has reached `arrivals` in this run, and acquire.

    In a program of several steps an event is signalled in each of them: the wait is for the signals of its own step, or
    of the one so many steps `back`; before there is such a step it is over at once.
    """

    event: int
    arrivals: int
    back: int = 0


Instruction = Run | Signal | Wait
Lane = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class RProgram:
    """The static plan of a graph: what each vEU does, in order (Rammer, 3.4).

    Parameters
    ----------
    name : str
        Also the name of the generated function.
    graph : RGraph
    kernels : tuple of RKernel
        The kernel chosen for each operator of the graph.
    lanes : tuple of tuple of Instruction
        One a vEU; each is executed as often as the graph has steps.
    num_events : int
        Events are numbered from 0; each has a counter that starts at 0 in every run.
    offsets : dict of int to int
        Byte offset in the workspace of each intermediate buffer (`RGraph.buffers` position). Buffers
        that overlap there must not be alive at the same time: the verifier proves it.
    workspace_bytes : int
        Size of the workspace that holds them.
    makespan_us : float
        Predicted time of the program, in microseconds, its launch included.
    barriers : int
        So many events, the last ones, are barriers: each lane that takes part signals and at once waits for all
        of them. Only their cost differs from that of other events.
    exit : int or None
        The event that says that a step has its `RGraph.condition`: each lane waits for it at the end of the step, and
        ends with the step where the condition is false.
    brief : bool
        Whether the vEUs beyond the first save less time than it takes to wake a thread. On a CPU no thread is woken for
        a brief program: its caller walks the lanes, with those workers that are awake, because they poll for work.
    """

    name: str
    graph: RGraph
    kernels: tuple[RKernel, ...]
    lanes: tuple[Lane, ...]
    num_events: int
    offsets: dict[int, int]
    workspace_bytes: int
    makespan_us: float = 0.0
    barriers: int = 0
    exit: int | None = None
    brief: bool = False

    @property
    def steps(self) -> int:
        """How often each lane is executed, at most."""
        return self.graph.steps

    @property
    def kept_bytes(self) -> int:
        """Bytes of constants that a vEU keeps over all steps, at most."""
        runs = ((i, self.kernels[i.operator].slices) for _, _, i in self.instructions() if isinstance(i, Run))
        return max((i.kept + i.count * of.nbytes for i, of in runs if i.kept is not None and of), default=0)

    def instructions(self) -> Iterator[tuple[int, int, Instruction]]:
        """Yield each instruction as (lane, position in it, instruction), lane after lane."""
        for v, lane in enumerate(self.lanes):
            for n, instruction in enumerate(lane):
                yield v, n, instruction

    def waits(self) -> int:
        """Number of `Wait` instructions over all vEUs."""
        return sum(isinstance(instruction, Wait) for _, _, instruction in self.instructions())

    def is_barrier(self, event: int) -> bool:
        """Whether an event is one of the barriers."""
        return event >= self.num_events - self.barriers
