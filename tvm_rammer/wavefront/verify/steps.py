"""What each lane of a loop knows of the others, step by step until nothing changes any more."""

from collections.abc import Sequence

from ...errors import VerificationError
from ...ir import RProgram, Signal, Wait

Clock = tuple[int, ...]
"""For each lane how many of its instructions have ended, counted from the beginning of the step that one is in: less
than 0 where all that is known lies in steps before."""

StepClocks = tuple[tuple[Clock, ...], ...]
"""For each lane, and each of its instructions, the clock at which it begins."""

_MOST_STEPS = 64


def execute_steps(program: RProgram) -> list[StepClocks]:
    """Execute steps abstractly until one finds what the one before it found.

    A wait is for the signals of one step. Where several lanes signal an event its counter only says how many signals
    there were; so each of them must know that all have signalled in one step before it signals in the next.

    Parameters
    ----------
    program : RProgram
        Of several steps, with well-formed instructions, each of whose waits is for all arrivals of a step.

    Returns
    -------
    list of StepClocks
        For each step until then. All further steps are as the last one.

    Raises
    ------
    VerificationError
        A deadlock, a counter that does not tell steps apart, or no end of what changes.
    """
    return _Steps(program).run()


class _Steps:
    def __init__(self, program: RProgram) -> None:
        self._program, self._lanes = program, program.lanes
        self._lengths = [len(lane) for lane in program.lanes]
        self._back = max((i.back for _, _, i in program.instructions() if isinstance(i, Wait)), default=0)
        places = [b.place for b in program.graph.buffers if b.place is not None]
        apart = max((max(place.phases, abs(place.ahead)) for place in places), default=0)
        # No rule asks for what lies so many steps back: there clocks are all the same.
        self._oldest = [-(2 + self._back + 2 * apart) * n for n in self._lengths]
        self._signals: dict[int, list[tuple[int, int]]] = {}
        for v, n, i in program.instructions():
            if isinstance(i, Signal):
                self._signals.setdefault(i.event, []).append((v, n))
        self._given: list[dict[tuple[int, int], Clock]] = []
        """For each step the clock of each signal, by lane and instruction, the signal itself included."""

    def run(self) -> list[StepClocks]:
        # Before the first step nothing is left to be waited for.
        clocks: list[Clock] = [tuple(0 for _ in self._lanes)] * len(self._lanes)
        found: list[StepClocks] = []
        states: list[object] = []
        for step in range(min(_MOST_STEPS, self._program.steps)):
            self._given.append({})
            begins, clocks = self._step(step, clocks)
            found.append(begins)
            self._check_counters(step, begins)
            recent = self._given[-max(1, self._back) :]
            states.append((clocks, tuple(tuple(sorted(given.items())) for given in recent)))
            if len(states) > max(1, self._back) and states[-1] == states[-2]:
                return found
        if self._program.steps <= _MOST_STEPS:
            return found
        raise VerificationError(
            f"program {self._program.name!r}: after {_MOST_STEPS} steps lanes still learn more of each other; bound "
            "how far one may be ahead"
        )

    def _step(self, step: int, clocks: Sequence[Clock]) -> tuple[StepClocks, list[Clock]]:
        """The clocks of a step, from those at its beginning; and those at the beginning of the next."""
        clocks = list(clocks)
        at = [0] * len(self._lanes)
        known: list[list[Clock]] = [[] for _ in self._lanes]
        progress = True
        while progress:
            progress = False
            for v, lane in enumerate(self._lanes):
                while at[v] < len(lane):
                    i, clock = lane[at[v]], clocks[v]
                    if isinstance(i, Wait) and step >= i.back:
                        given = self._given[step - i.back]
                        signals = self._signals.get(i.event, [])
                        if any(signal not in given for signal in signals):
                            break
                        known[v].append(clock)
                        for signal in signals:
                            clock = self._joined(clock, given[signal], i.back)
                        clocks[v] = clock
                    else:
                        known[v].append(clock)
                    if isinstance(i, Signal):
                        self._given[step][v, at[v]] = tuple(
                            at[v] + 1 if u == v else seen for u, seen in enumerate(clock)
                        )
                    at[v] += 1
                    progress = True
        if stuck := [v for v, lane in enumerate(self._lanes) if at[v] < len(lane)]:
            raise VerificationError(
                f"program {self._program.name!r} deadlocks in step {step}: lanes {stuck[:4]} wait for each other"
            )
        after = [
            tuple(max(c - n, oldest) for c, n, oldest in zip(clock, self._lengths, self._oldest, strict=True))
            for clock in clocks
        ]
        return tuple(map(tuple, known)), after

    def _joined(self, clock: Clock, given: Clock, back: int) -> Clock:
        return tuple(max(a, b - back * n) for a, b, n in zip(clock, given, self._lengths, strict=True))

    def _check_counters(self, step: int, begins: StepClocks) -> None:
        for event, signals in self._signals.items():
            for v, n in signals if len(signals) > 1 and step else ():
                for u, m in signals:
                    if u != v and begins[v][n][u] < m + 1 - self._lengths[u]:
                        raise VerificationError(
                            f"program {self._program.name!r}: lane {v} may signal event {event} twice before lane {u} "
                            "does once, and the counter cannot tell; give each lane an event of its own"
                        )
