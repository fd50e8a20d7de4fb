"""Local search (hill climbing) from the plans of the other policies."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from ..plan.builder import ProgramBuilder
from ..predict.predicted import predicted_us
from ..problem import Problem
from .global_barrier import global_barrier
from .ios.ios import ios
from .list_scheduling import list_scheduling
from .replay import Replay, Step
from .sequential import sequential
from .wavefront import wavefront

_INITIAL = (wavefront, list_scheduling, ios, sequential, global_barrier)
_SAME_FUNCTION = 0.3
"""Probability that all operators of a function change their kernel together: blocks of a network repeat."""


def search(problem: Problem) -> list[ProgramBuilder]:
    """Plan with each other policy, then try moves from the best plan until the budget is spent.

    A move gives an operator another kernel, appends it earlier or later, or puts a barrier before it. It is kept if
    the plan does not become slower. The result is never slower than the best of the others, and depends on the
    problem and its options alone, unless they limit the time by a clock.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
    """
    plans = [policy(problem) for policy in _INITIAL]
    best = min(plans, key=predicted_us)
    if not problem.graph.operators:
        return best
    found = _climb(problem, [_steps(plan, problem) for plan in plans])
    return min(best, [found], key=predicted_us)


def _climb(problem: Problem, starts: Sequence[Sequence[Step]]) -> ProgramBuilder:
    replay, moves = Replay(ProgramBuilder(problem)), _Moves(problem)
    best_us, best = min(((replay.time_us(steps), list(steps)) for steps in starts), key=lambda found: found[0])
    spent = _stopwatch(problem)
    for _ in range(problem.options.budget):
        if spent():
            break
        steps = moves.draw(best)
        if steps == best:
            continue
        time_us = replay.time_us(steps)
        if time_us <= best_us:
            best_us, best = time_us, steps
    replay.time_us(best)
    return replay.builder


def _stopwatch(problem: Problem) -> Callable[[], bool]:
    """Return a function that tells whether the time limit, if there is one, has passed since now."""
    seconds, clock = problem.options.seconds, problem.options.clock
    if seconds is None or clock is None:
        return lambda: False
    end = clock() + seconds
    return lambda: clock() >= end


def _steps(plan: Sequence[ProgramBuilder], problem: Problem) -> list[Step]:
    """Operators and kernels of a plan, in its order, in one program."""
    chosen = [Step(o, kernel) for builder in plan for o, kernel in builder.kernels.items()]
    return _with_barriers(chosen, problem)


def _with_barriers(steps: Sequence[Step], problem: Problem) -> list[Step]:
    """With `sync="global"`: a barrier before each operator that depends on one since the last."""
    if problem.sync != "global":
        return list(steps)
    found: list[Step] = []
    since_barrier: set[int] = set()
    for step in steps:
        barrier = not since_barrier.isdisjoint(problem.predecessors[step.operator])
        if barrier:
            since_barrier.clear()
        since_barrier.add(step.operator)
        found.append(replace(step, barrier=barrier))
    return found


class _Moves:
    """Draws random moves."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.random = Random(problem.options.seed)
        self.successors: list[set[int]] = [set() for _ in problem.graph.operators]
        for operator, before in enumerate(problem.predecessors):
            for p in before:
                self.successors[p].add(operator)

    def draw(self, steps: Sequence[Step]) -> list[Step]:
        """The plan after a move; sometimes the same plan, where no move is possible."""
        at = self.random.randrange(len(steps))
        kind = self.random.random()
        if kind < 0.45:
            changed = self._other_kernel(steps, at)
        elif kind < 0.95 or self.problem.sync == "global":
            changed = self._other_position(steps, at)
        else:
            changed = [*steps]
            changed[at] = replace(steps[at], barrier=at > 0 and not steps[at].barrier)
        return _with_barriers(changed, self.problem)

    def _other_kernel(self, steps: Sequence[Step], at: int) -> list[Step]:
        kernel = self.random.choice(self.problem.candidates(steps[at].operator))
        if self.random.random() >= _SAME_FUNCTION:
            return [*steps[:at], replace(steps[at], kernel=kernel), *steps[at + 1 :]]
        return [replace(step, kernel=kernel) if step.kernel.function == kernel.function else step for step in steps]

    def _other_position(self, steps: Sequence[Step], at: int) -> list[Step]:
        """Move a step to anywhere between its last predecessor and its first successor."""
        step = steps[at]
        before, after = self.problem.predecessors[step.operator], self.successors[step.operator]
        first, last = at, at
        while first and steps[first - 1].operator not in before:
            first -= 1
        while last + 1 < len(steps) and steps[last + 1].operator not in after:
            last += 1
        rest = [*steps[:at], *steps[at + 1 :]]
        to = self.random.randint(first, last)
        return [*rest[:to], step, *rest[to:]]
