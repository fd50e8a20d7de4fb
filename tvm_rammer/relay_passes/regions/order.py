"""The order in which the bindings of a block stand once launches are among them."""

import heapq
import itertools
from dataclasses import dataclass, field

from tvm import relax

from ...errors import CodegenError


@dataclass
class Item:
    """What is emitted together: one old binding, or a launch and the bindings of its results.

    Reads are of values, and of sizes that only run time knows; `sizes` are those that a binding gives a name to.
    """

    bindings: list[relax.Binding]
    reads: set[relax.Var]
    position: tuple[int, int]
    after: set[int] = field(default_factory=set)
    barrier: bool = False
    sizes: set[relax.Var] = field(default_factory=set)


def chain(launches: list[Item]) -> None:
    """Let each launch read the one before it, so that they keep their order."""
    for before, item in itertools.pairwise(launches):
        item.reads.add(before.bindings[-1].var)


def keep_order(items: list[Item]) -> None:
    """Let a barrier read all that stood before it, and all that stood behind it read the barrier."""
    for barrier in [item for item in items if item.barrier]:
        (position,) = barrier.after
        for item in items:
            if item is not barrier and max(item.after) < position:
                barrier.reads.add(item.bindings[-1].var)
            elif item is not barrier and min(item.after) > position:
                item.reads.add(barrier.bindings[-1].var)


def topological_order(items: list[Item]) -> list[relax.Binding]:
    """Order items so that each stands behind what it reads: launches as early as possible, the rest as it was.

    Raises
    ------
    CodegenError
        Launches wait for each other.
    """
    maker = {binding.var: i for i, item in enumerate(items) for binding in item.bindings}
    maker |= {size: i for i, item in enumerate(items) for size in item.sizes}
    waits = [{maker[var] for var in item.reads if var in maker} - {i} for i, item in enumerate(items)]
    followers: dict[int, list[int]] = {}
    for i, needed in enumerate(waits):
        for n in needed:
            followers.setdefault(n, []).append(i)
    ready = [(item.position, i) for i, item in enumerate(items) if not waits[i]]
    heapq.heapify(ready)
    ordered: list[relax.Binding] = []
    done = 0
    while ready:
        _, i = heapq.heappop(ready)
        ordered.extend(items[i].bindings)
        done += 1
        for j in followers.get(i, ()):
            waits[j].discard(i)
            if not waits[j]:
                heapq.heappush(ready, (items[j].position, j))
    if done != len(items):
        stuck = [items[i].bindings[-1].var.name for i, needed in enumerate(waits) if needed]
        raise CodegenError(f"the launches wait for each other: {', '.join(stuck[:5])}; split them")
    return ordered
