"""Waves: the fringe of a breadth-first walk (Rammer, Algorithm 1)."""

from collections.abc import Sequence


def waves(predecessors: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Group operators into waves.

    Parameters
    ----------
    predecessors : sequence of sequence of int
        For each operator its predecessors, all of smaller number.

    Returns
    -------
    tuple of tuple of int
        Wave after wave; each operator is in the first wave after those of all its predecessors.
    """
    level: list[int] = []
    for before in predecessors:
        level.append(1 + max((level[p] for p in before), default=-1))
    fringe: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for operator, n in enumerate(level):
        fringe[n].append(operator)
    return tuple(tuple(wave) for wave in fringe)
