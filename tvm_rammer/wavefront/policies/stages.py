"""Where a graph comes together: parts of it that can only run one after another, such as the modules of a network."""

from collections.abc import Iterable, Sequence


def stages(predecessors: Sequence[Sequence[int]], order: Iterable[int]) -> list[list[int]]:
    """Cut an order of operators wherever all that follow depend on all that came before.

    Parameters
    ----------
    predecessors : sequence of sequence of int
        Of each operator.
    order : iterable of int
        All operators, each after those that it depends on.

    Returns
    -------
    list of list of int
        The operators of each stage, in the given order. rTasks of a stage may begin before all of the last one have
        ended, if what they read is there.
    """
    before = _ancestors(predecessors)
    successors: list[list[int]] = [[] for _ in predecessors]
    for operator, needed in enumerate(predecessors):
        for p in needed:
            successors[p].append(operator)
    missing = [len(needed) for needed in predecessors]
    ready = {operator for operator, count in enumerate(missing) if not count}
    found: list[list[int]] = [[]]
    done = 0
    for operator in order:
        if found[-1] and all(before[o] == done for o in ready):
            found.append([])
        found[-1].append(operator)
        ready.remove(operator)
        done |= 1 << operator
        for successor in successors[operator]:
            missing[successor] -= 1
            if not missing[successor]:
                ready.add(successor)
    return [stage for stage in found if stage]


def _ancestors(predecessors: Sequence[Sequence[int]]) -> list[int]:
    """All that each operator depends on, as bits."""
    found: list[int] = []
    for needed in predecessors:
        found.append(0)
        for p in needed:
            found[-1] |= found[p] | 1 << p
    return found
