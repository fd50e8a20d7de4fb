"""What the rules for CPUs share: which tilings are worth naming, and the last step of building one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

from tvm import tirx
from tvm.s_tir.schedule import Trace

from ...ir import RKernel
from ...kernel import Pack, ScheduledKernel
from ..tiling import Function, Tiling
from .branches import branch_stores
from .math import reciprocals, vector_math

Tile = TypeVar("Tile")

MOST_RTASKS_PER_UNIT = 32
"""More rTasks than this balance no better, and each has a fixed price."""
WORST = 2.0
"""A tiling predicted to be so many times slower than the best of the same number of rTasks is not tried."""


def divisors(n: int) -> list[int]:
    """All divisors of a positive number, in order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


def choices_of(tile: Any) -> tuple[tuple[str, int], ...]:
    """The fields of a tile, a dataclass of integers, by their names."""
    return tuple((field.name, getattr(tile, field.name)) for field in fields(tile))


def pick(tiles: Iterable[Tile], choices: Mapping[str, int]) -> Tile | None:
    """The tile with these choices; None where it is not among the tiles."""
    return next((t for t in tiles if dict(choices_of(t)) == choices), None)


def useful(tilings: Sequence[Tiling]) -> list[Tiling]:
    """Those that are not far slower than another with as many rTasks, best first for each such number."""
    best: dict[int, float] = {}
    for tiling in tilings:
        best[tiling.num_rtasks] = min(tiling.rtask_us, best.get(tiling.num_rtasks, tiling.rtask_us))
    kept = [t for t in tilings if t.rtask_us <= WORST * best[t.num_rtasks]]
    return sorted(kept, key=lambda t: (t.num_rtasks, t.rtask_us))


def finish(
    function: Function,
    tiling: Tiling,
    code: tirx.PrimFunc,
    packs: Mapping[int, Pack] | None = None,
    trace: Trace | None = None,
) -> ScheduledKernel:
    """The rKernel of a tiling: its code with functions as arithmetic and choices as statements."""
    name = f"{function.name}_{tiling.label}"
    spec = RKernel(name, function.name, tiling.num_rtasks, tiling.rtask_us)
    return ScheduledKernel(spec, vector_math(branch_stores(reciprocals(code))), packs or {}, trace)
