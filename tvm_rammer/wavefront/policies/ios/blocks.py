"""Blocks: parts of a graph that can be planned one after another with little loss (IOS, 4.2)."""

from collections.abc import Sequence


def blocks(predecessors: Sequence[Sequence[int]], limit: int) -> list[range]:
    """Cut a graph, where possible at operators that every path passes through.

    Parameters
    ----------
    predecessors : sequence of sequence of int
        For each operator its predecessors, all of smaller number.
    limit : int
        Most operators of a block. A part that no such operator divides may be larger.

    Returns
    -------
    list of range
        Operators of each block, together all of them in order.
    """
    last_reader = list(range(len(predecessors)))
    for operator, before in enumerate(predecessors):
        for p in before:
            last_reader[p] = operator
    found: list[range] = []
    begin, cut, needed = 0, 0, 0
    for operator in range(len(predecessors)):
        # It is the last reader of all that comes before: what comes after depends on it alone.
        if needed <= operator:
            if operator + 1 - begin > limit and cut > begin:
                found.append(range(begin, cut))
                begin = cut
            cut = operator + 1
        needed = max(needed, last_reader[operator])
    return [*found, range(begin, len(predecessors))] if predecessors else []
