"""A bound for the choice of kernels: those that are fast do more work than those that are efficient."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .lower_bound_path import Readings

MOST_ROUNDS = 200
"""Rounds of the search for weights."""

CLOSE = 0.998
"""Part of the best bound of its kind with which the search ends."""

Times = Sequence[float]
"""A time of an operator for each of its kernels, in microseconds."""


@dataclass(frozen=True, slots=True)
class _Arc:
    """A moment of a plan that comes so long after another one, whatever else the plan does.

    Parameters
    ----------
    before : int
        The earlier moment (`_Moments`).
    terms : tuple of int
        The times whose sum lies between them, by their numbers.
    """

    before: int
    terms: tuple[int, ...]


def choice_us(readings: Readings) -> float:
    """A lower bound on the end of every plan, its launch not counted, whatever kernels it chooses.

    Parameters
    ----------
    readings : Readings
        Of the problem.

    Returns
    -------
    float

    Notes
    -----
    A plan takes at least as long as its longest path, and as all its work shared evenly; so at least as long as any
    weighted mean of paths and work. Such a mean is a sum of times of operators, each by its own kernel. It is least
    where every operator has the kernel for which its own part is least: a bound for any weights. This is the
    Lagrangian relaxation of the discrete time-cost trade-off problem (De et al., EJOR 1995). Weights are found by
    fictitious play (Brown, 1951): in turns, the longest path under the mean of all choices so far gains weight, and
    each operator chooses a kernel under the mean weights.
    """
    moments = _Moments(readings)
    mean = [[1.0 / len(kernels)] * len(kernels) for kernels in moments.candidates]
    prices = [[0.0] * len(kernels) for kernels in moments.candidates]
    best_us = 0.0
    for turn in range(1, MOST_ROUNDS + 1):
        longest_us, path = moments.longest_path(mean)
        if best_us >= CLOSE * longest_us:
            break
        newest = 2.0 / (turn + 1)
        for operator, row in enumerate(prices):
            prices[operator] = [price * (1.0 - newest) for price in row]
        for term, count in path.items():
            operator, times = moments.terms[term]
            prices[operator] = [p + newest * count * us for p, us in zip(prices[operator], times, strict=True)]
        best_us = max(best_us, sum(map(min, prices)))
        for operator, row in enumerate(prices):
            chosen = row.index(min(row))
            mean[operator] = [m * (1.0 - newest) for m in mean[operator]]
            mean[operator][chosen] += newest
    return best_us


class _Moments:
    """The moments of a plan, and what must pass between them.

    Operator o starts first at moment 2 o + 1, and ends last at moment 2 o + 2. Moment 0 is the plan's start, and the
    last one its end. Arcs lead forward.

    Parameters
    ----------
    readings : Readings

    Attributes
    ----------
    candidates : list of sequence of RKernel
    terms : list of (int, Times)
        Operators, and a time of each kernel of theirs.
    """

    def __init__(self, readings: Readings) -> None:
        self._readings, self._problem = readings, readings.problem
        operators = range(len(self._problem.graph.operators))
        self.candidates = [self._problem.candidates(o) for o in operators]
        self.terms: list[tuple[int, Times]] = []
        self._rtask = [self._term(o, [self._problem.cost.rtask_us(k) for k in self.candidates[o]]) for o in operators]
        self._arcs: list[list[_Arc]] = [[] for _ in range(2 * len(operators) + 2)]
        for operator in operators:
            self._add_operator(operator)
            self._add_bridges(operator)
        self._add_work()

    def longest_path(self, mean: Sequence[Times]) -> tuple[float, Counter[int]]:
        """The longest path where operators have so much of each kernel, with how often it takes each term."""
        us = [sum(m * t for m, t in zip(mean[operator], times, strict=True)) for operator, times in self.terms]
        ends, last = [0.0], [_Arc(0, ())]
        for arcs in self._arcs[1:]:
            end_us, arc = 0.0, _Arc(0, ())
            for found in arcs:
                after_us = ends[found.before] + sum(us[term] for term in found.terms)
                if after_us > end_us:
                    end_us, arc = after_us, found
            ends.append(end_us)
            last.append(arc)
        path = Counter[int]()
        moment = len(ends) - 1
        while moment:
            path.update(last[moment].terms)
            moment = last[moment].before
        return ends[-1], path

    def _add_operator(self, operator: int) -> None:
        """Add what the first start and the last end of an operator come after."""
        cost, veus = self._problem.cost, self._problem.veus
        first, end, rtask = 2 * operator + 1, 2 * operator + 2, self._rtask[operator]
        alone = self._term(operator, [cost.operator_us(k, veus) for k in self.candidates[operator]])
        self._arcs[end].append(_Arc(first, (alone,)))
        self._arcs[-1].append(_Arc(end, ()))
        for before in self._problem.predecessors[operator]:
            by_writer = list(zip(*self._readings.between(before, operator), strict=True))
            pairs = [reading for column in by_writer for reading in column]
            least = [[reading.least_us for reading in column] for column in by_writer]
            most = [[reading.most_us for reading in column] for column in by_writer]
            if (times := _least_of(least)) is not None:
                self._arcs[first].append(_Arc(2 * before + 1, (self._term(before, times),)))
            if (times := _least_of(most)) is not None:
                self._arcs[end].append(_Arc(2 * before + 1, (self._term(before, times), rtask)))
            if all(reading.least_all for reading in pairs):
                self._arcs[first].append(_Arc(2 * before + 2, ()))
            if all(reading.covers for reading in pairs):
                self._arcs[end].append(_Arc(2 * before + 2, (rtask,)))

    def _add_bridges(self, operator: int) -> None:
        """Add what an operator comes after by way of others."""
        for bridge in self._readings.bridges(operator):
            begin = self._term(bridge.first, bridge.some_us)
            self._arcs[2 * operator + 1].append(_Arc(2 * bridge.first + 1, (begin, self._rtask[bridge.middle])))

    def _add_work(self) -> None:
        """Add the work of all operators, shared evenly by all vEUs."""
        steps, cost, veus = self._problem.graph.steps, self._problem.cost, self._problem.veus
        shares = [[steps * cost.work_us(kernel) / veus for kernel in kernels] for kernels in self.candidates]
        work = [self._term(operator, times) for operator, times in enumerate(shares)]
        self._arcs[-1].append(_Arc(0, tuple(work)))

    def _term(self, operator: int, times: Times) -> int:
        self.terms.append((operator, times))
        return len(self.terms) - 1


def _least_of(times: Sequence[Sequence[float | None]]) -> list[float] | None:
    """The least time of each row; None where something is unknown."""
    if any(us is None for row in times for us in row):
        return None
    return [min(us for us in row if us is not None) for row in times]
