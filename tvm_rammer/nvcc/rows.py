"""What a row of the plan costs in a persistent kernel's SASS, beside the rTask itself, and what the rTask does.

The model is that of issue.py: for the row a single warp, of which each instruction is issued when its stall count and
scoreboards allow it; for the rTask all of them. Loads from global memory count nothing in a row, for their trips are
told apart; nor do fences, which wait for stores, nobody knows how long.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ToolError
from .issue import BARRIER_CYCLES, GLOBAL_LATENCY, SHARED_LATENCY, simulate_once
from .sass import Instruction, Kernel

_ALU_LATENCY = 15
_MAX_PATHS = 100_000


@dataclass(frozen=True, slots=True)
class RowCosts:
    """Cycles of a warp in the parts of a row.

    Parameters
    ----------
    rows : tuple of float
        For each way to a block barrier, which are as many as rTask functions and one for rows without a run: from
        the row's first instruction on, where it has nothing to wait for. All is decoded then.
    wait : float
        What it takes more, at most, where it waits and finds all its counters done in the first look; the look's own
        trip is `trip`.
    trip : float
        Cycles of one load from the last-level cache.
    loads : tuple of float
        For each rTask function that loads anything: from the barrier to its first load.
    signal : float
        From the barrier before signals to the last of them, beside the fence.
    """

    rows: tuple[float, ...]
    wait: float
    trip: float
    loads: tuple[float, ...]
    signal: float


@dataclass(frozen=True, slots=True)
class RTaskCosts:
    """Cycles of an rTask in the parts of its code, which follow one another, by the warps of a block.

    Parameters
    ----------
    loads : float
        In which all warps wait for loads from beyond the unit.
    products : float
        Up to the last multiply-add, beside these; 0 where nothing is summed up by several threads.
    rest : float
        What comes then, up to the barrier: the sums of all threads, and what is computed of them.
    """

    loads: float
    products: float
    rest: float


def rtask_costs(kernel: Kernel, warps: int) -> tuple[RTaskCosts, ...]:
    """Measure the rTask functions in the code of a persistent kernel that load, store, and are followed by a signal.

    Parameters
    ----------
    kernel : Kernel
    warps : int
        Of a block.

    Raises
    ------
    ToolError
        It is no such kernel.
    """
    head, last, signalling = _find(kernel)
    runs = {path[-1] for path, _ in _paths(kernel, head, last, _is_block_barrier)}
    shortest: dict[int, tuple[float, list[Instruction]]] = {}
    for path, cycles in (way for run in runs for way in _paths(kernel, run, last, _is_block_barrier)):
        body = [kernel.code[at] for at in path[1:]]
        loads = [at for at in path if kernel.code[at].name in ("LDG", "LD")]
        if path[-1] == signalling and loads and any(i.name == "STG" for i in body):
            found = cycles, body
            shortest[loads[0]] = min(found, shortest.get(loads[0], found), key=lambda way: way[0])
    return tuple(_parts(body, warps) for _, body in shortest.values())


def _first_sum(body: Sequence[Instruction]) -> int:
    """Where threads begin to add up, by shuffles or behind a barrier of the rTask; 0 where they do not."""
    multiplied = next((n for n, i in enumerate(body) if i.name == "FFMA"), len(body))
    return next(
        (
            n
            for n, i in enumerate(body)
            if i.text.startswith("SHFL.BFLY") or (n > multiplied and i.name == "BAR" and not _is_block_barrier(i))
        ),
        0,
    )


def _parts(body: Sequence[Instruction], warps: int) -> RTaskCosts:
    sums = _first_sum(body)
    whole, without = (simulate_once(body, warps, latency).cycles for latency in (GLOBAL_LATENCY, 0))
    products = simulate_once(body[:sums], warps, 0).cycles if sums else 0.0
    return RTaskCosts(whole - without, products, without - products)


def row_costs(kernel: Kernel) -> RowCosts:
    """Measure the parts of a row in the code of a persistent kernel.

    Raises
    ------
    ToolError
        It is no such kernel.
    """
    head, last, signalling = _find(kernel)

    def looks(path: list[int]) -> bool:
        return any("STRONG" in kernel.code[at].text for at in path)

    def sleeps(path: list[int]) -> bool:
        return any(kernel.code[at].name == "NANOSLEEP" for at in path)

    without: dict[int, float] = {}
    waiting: dict[int, float] = {}
    for path, cycles in _paths(kernel, head, last, _is_block_barrier):
        if not sleeps(path):
            most = waiting if looks(path) else without
            most[path[-1]] = max(cycles, most.get(path[-1], 0.0))
    if not waiting or waiting.keys() != without.keys():
        raise ToolError("the code is not that of a persistent kernel, which waits before each run if it has to")
    first_loads: dict[int, float] = {}
    for run in without:
        for path, cycles in _paths(kernel, run, last, lambda i: i.name in ("LDG", "LD") or _is_block_barrier(i)):
            if not _is_block_barrier(kernel.code[path[-1]]):
                first_loads[path[-1]] = max(cycles - BARRIER_CYCLES, first_loads.get(path[-1], 0.0))
    signals = [c for _, c in _paths(kernel, signalling, last, lambda i: i.name in ("RED", "ATOM", "ATOMG"))]
    return RowCosts(
        rows=tuple(sorted(without.values())),
        wait=max(waiting[run] - cycles for run, cycles in without.items()),
        trip=GLOBAL_LATENCY,
        loads=tuple(sorted(first_loads.values())),
        signal=max(signals) - BARRIER_CYCLES,
    )


def _is_block_barrier(i: Instruction) -> bool:
    return i.name == "BAR" and i.text.rstrip().endswith("0x0")


def _find(kernel: Kernel) -> tuple[int, int, int]:
    """The first and last instruction of the loop over rows, and the barrier before signals."""
    names = [i.name for i in kernel.code]
    fences = [at for at, name in enumerate(names) if name == "MEMBAR"]
    # What is put aside for warps whose threads are apart jumps back, too, from behind the loop.
    for first, last in sorted(kernel.loops(), key=lambda loop: loop[1]):
        inside = [at for at in fences if first <= at <= last]
        if inside and "NANOSLEEP" in names[first:last]:
            barriers = [at for at in range(first, inside[-1]) if names[at] == "BAR"]
            return first, last, barriers[-1]
    raise ToolError("the code has no loop that waits and signals: it is not that of a persistent kernel")


def _paths(
    kernel: Kernel, first: int, last: int, ends: Callable[[Instruction], bool]
) -> Iterator[tuple[list[int], float]]:
    """Each way from an instruction to the next one that `ends` it, within a loop, and its cycles."""
    stack: list[tuple[list[int], float, tuple[float, ...]]] = [([first], 0.0, (0.0,) * 6)]
    for _ in range(_MAX_PATHS):
        if not stack:
            return
        path, now, boards = stack.pop()
        instruction = kernel.code[path[-1]]
        now = max([now, *(boards[b] for b in range(6) if instruction.waits >> b & 1)])
        if len(path) > 1 and ends(instruction):
            yield path, now
            continue
        boards = tuple(
            max(board, now + _latency(instruction)) if b in (instruction.writes, instruction.reads) else board
            for b, board in enumerate(boards)
        )
        after = now + (BARRIER_CYCLES if instruction.name == "BAR" else instruction.stall)
        for following in _following(kernel, path[-1]):
            if following not in path and first <= following <= last:
                stack.append(([*path, following], after, boards))
    raise ToolError(f"the code has more than {_MAX_PATHS} ways through a row")


def _following(kernel: Kernel, at: int) -> list[int]:
    instruction = kernel.code[at]
    if instruction.text.startswith("BRA.DIV"):  # taken by warps whose threads are apart
        return [at + 1]
    if instruction.name == "EXIT" and not instruction.predicated:
        return []
    jumps = instruction.name == "BRA" and instruction.target in kernel.labels
    falls = not jumps or instruction.predicated
    found = [at + 1] if falls and at + 1 < len(kernel.code) else []
    return [*found, kernel.labels[instruction.target]] if jumps else found


def _latency(instruction: Instruction) -> int:
    if instruction.name in ("LDG", "LD", "MEMBAR"):
        return 0
    return SHARED_LATENCY if instruction.name in ("LDS", "SHFL", "LDC") else _ALU_LATENCY
