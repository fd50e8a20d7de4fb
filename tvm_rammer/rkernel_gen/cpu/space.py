"""What the rules for CPUs share: divisors, the choice of tilings that are listed, and the last step of building one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tvm import tirx
from tvm.s_tir.schedule import Trace

from ...ir import RKernel
from ...kernel import Pack, ScheduledKernel
from ...vector_math import vector_math
from ..tiling import Function, Tile, Tiling, choices_of
from .branches import branch_stores
from .reciprocals import reciprocals

TileT = TypeVar("TileT", bound=Tile)

MAX_RTASKS_PER_UNIT = 32
"""More rTasks balance no better, and each has a fixed cost."""
MAX_SLOWDOWN = 2.0
"""Tilings that are predicted to be slower by this factor than the best with as many rTasks are not listed."""


@dataclass(frozen=True, slots=True)
class PartsTile:
    """The number of rTasks, and the elements of the longest vectors that loops are split into."""

    parts: int
    simd: int


def divisors(n: int) -> list[int]:
    """All divisors of a positive number, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


def find_tile(tiles: Iterable[TileT], choices: Mapping[str, int]) -> TileT | None:
    """The tile with these choices; None where there is none."""
    fitting = (t for t in tiles if all(getattr(t, name, None) == value for name, value in choices.items()))
    return next((t for t in fitting if len(choices_of(t)) == len(choices)), None)


def prune(tilings: Sequence[Tiling]) -> list[Tiling]:
    """Drop tilings that are much slower than another with as many rTasks; order by that number, then by time."""
    best: dict[int, float] = {}
    for tiling in tilings:
        best[tiling.num_rtasks] = min(tiling.rtask_us, best.get(tiling.num_rtasks, tiling.rtask_us))
    kept = [t for t in tilings if t.rtask_us <= MAX_SLOWDOWN * best[t.num_rtasks]]
    return sorted(kept, key=lambda t: (t.num_rtasks, t.rtask_us))


def scheduled_kernel(
    function: Function,
    tiling: Tiling,
    code: tirx.PrimFunc,
    packs: Mapping[int, Pack] | None = None,
    trace: Trace | None = None,
) -> ScheduledKernel:
    """The rKernel of a tiling, from its code before the passes that all CPU kernels go through."""
    name = f"{function.name}_{tiling.label}"
    spec = RKernel(name, function.name, tiling.num_rtasks, tiling.rtask_us)
    return ScheduledKernel(spec, vector_math(branch_stores(reciprocals(code))), packs or {}, trace, tiling.rule)
