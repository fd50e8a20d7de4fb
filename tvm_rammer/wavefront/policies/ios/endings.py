"""Endings of a set of operators: what the dynamic program of IOS takes off the end (IOS, 4.1)."""

from collections.abc import Iterator, Sequence


def count_states(successors: Sequence[int], limit: int) -> int:
    """Count the sets that contain the predecessors of all their operators: the states of the dynamic program.

    Parameters
    ----------
    successors : sequence of int
        For each operator the operators that depend on it, as bits.
    limit : int

    Returns
    -------
    int
        The empty set is counted too; 0 stands for more than `limit`.
    """
    everything = (1 << len(successors)) - 1
    seen, todo = {everything}, [everything]
    while todo:
        state = todo.pop()
        for operator, after in enumerate(successors):
            smaller = state & ~(1 << operator)
            if state >> operator & 1 and not after & state and smaller not in seen:
                if len(seen) == limit:
                    return 0
                seen.add(smaller)
                todo.append(smaller)
    return len(seen)


def endings(state: int, successors: Sequence[int], r: int, s: int) -> Iterator[int]:
    """List the sets of operators that can be the last stage of a state.

    Parameters
    ----------
    state : int
        The operators that are not yet planned, as bits.
    successors : sequence of int
        For each operator the operators that depend on it, as bits; all of larger number.
    r, s : int
        At most so many operators a group, and groups a stage. Groups are connected by dependences.

    Yields
    ------
    int
        A set that is not empty and contains, of the state, all successors of its operators.
    """
    members = [o for o in range(state.bit_length() - 1, -1, -1) if state >> o & 1]

    def extend(at: int, ending: int, groups: tuple[int, ...]) -> Iterator[int]:
        if at == len(members):
            if ending and len(groups) <= s:
                yield ending
            return
        operator = members[at]
        after = successors[operator] & state
        if not after & ~ending:
            joined, apart = 1 << operator, []
            for group in groups:
                if group & after:
                    joined |= group
                else:
                    apart.append(group)
            if joined.bit_count() <= r:
                yield from extend(at + 1, ending | 1 << operator, (*apart, joined))
        yield from extend(at + 1, ending, groups)

    return extend(0, 0, ())
