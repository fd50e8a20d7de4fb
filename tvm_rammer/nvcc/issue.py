"""How fast a unit would issue the code of a kernel: what can be known without a GPU.

The model: one block on one unit, its warps dealt to four schedulers that issue one instruction a cycle each, each
instruction when the stall count, the scoreboards and the wait mask that ptxas gave it allow; floating point at full
rate, integers at half, matrix instructions at the rate of sm_80's; one pipe a unit for all memory, with a cycle for
each 128 bytes; one latency for all global loads, behind a port of 64 bytes a cycle; block barriers. Caches, bank
conflicts, divergence, the instruction cache and other blocks are not in it. An H200 took 0.7 to 2.3 times what it said
(docs/gpu-results.md): it says which of two kernels is better, not how fast one is.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .sass import LOADS, MEMORY, SHARED, Instruction

SCHEDULERS = 4
GLOBAL_LATENCY, SHARED_LATENCY, BARRIER_CYCLES = 280, 24, 20
"""Cycles: of a load from the last-level cache, of one from shared memory, of a barrier after its last warp."""

PORT_BYTES = 64
"""A cycle, between a unit and the last-level cache."""

TENSOR_MACS = 8
"""Multiply-adds of a thread that a scheduler's tensor core does in a cycle by `mma.sync` on sm_80: half of what sm_90's
own instructions do. Of TF32 it does half as many."""

_FULL_RATE = {"FFMA", "FADD", "FMUL", "BRA", "NOP", "BAR", "BSSY", "BSYNC", "EXIT", "WARPSYNC"}


@dataclass(frozen=True, slots=True)
class Speed:
    """How code runs in the model: cycles of a pass, and bytes of global loads under way on average."""

    cycles: float
    bytes_in_flight: float


def simulate(
    body: Sequence[Instruction], warps: int, latency: int = GLOBAL_LATENCY, passes: int = 3, blocks: int = 1
) -> Speed:
    """Issue some passes of a loop by all warps of some blocks; the first one fills the pipelines and is not counted."""
    machine = _Machine(body, warps, latency, blocks)
    while min(map(len, machine.ends)) < passes:
        machine.step(passes)
    total = max(ends[-1] for ends in machine.ends)
    return Speed((total - max(ends[0] for ends in machine.ends)) / (passes - 1), machine.flight / max(1, total))


def simulate_once(body: Sequence[Instruction], warps: int, latency: int = GLOBAL_LATENCY, blocks: int = 1) -> Speed:
    """Issue some code once, from when nothing is under way to when nothing is."""
    machine = _Machine(body, warps, latency, blocks)
    while min(map(len, machine.ends)) < 1:
        machine.step(1)
    return Speed(machine.finished, machine.flight / max(1, machine.finished))


class _Machine:
    def __init__(self, body: Sequence[Instruction], warps: int, latency: int, blocks: int) -> None:
        self.body, self.block, self.latency = body, warps, latency
        self.warps = warps * blocks
        self.at, self.ready = [0] * self.warps, [0] * self.warps
        self.boards = [[0] * 6 for _ in range(self.warps)]
        self.ends: list[list[int]] = [[] for _ in range(self.warps)]
        self.pipes = [Counter[str]() for _ in range(SCHEDULERS)]
        self.last = [0] * SCHEDULERS
        self.waiting: set[int] = set()
        self.cycle, self.memory, self.finished = 0, 0, 0
        self.port, self.flight = 0.0, 0.0

    def step(self, passes: int) -> None:
        """Issue what can be issued in this cycle, and go on to the next one in which something can."""
        soonest = 1 << 60
        for unit in range(SCHEDULERS):
            mine = [w for w in range(unit, self.warps, SCHEDULERS) if len(self.ends[w]) < passes]
            for warp in (*mine[self.last[unit] :], *mine[: self.last[unit]]):
                start = self._start(unit, warp)
                if warp not in self.waiting and start <= self.cycle:
                    self.last[unit] = mine.index(warp) + 1
                    self._issue(unit, warp)
                    soonest = self.cycle + 1
                    break
                if warp not in self.waiting:
                    soonest = min(soonest, start)
        self.cycle = max(self.cycle + 1, soonest)

    def _start(self, unit: int, warp: int) -> int:
        instruction = self.body[self.at[warp]]
        waits = [self.boards[warp][b] for b in range(6) if instruction.waits >> b & 1]
        queue = [self.memory - 31] if instruction.name in MEMORY else [self.pipes[unit][_pipe(instruction)]]
        return max([self.ready[warp], *waits, *queue])

    def _issue(self, unit: int, warp: int) -> None:
        instruction, cycle = self.body[self.at[warp]], self.cycle
        done = read = cycle + 15
        if instruction.name in MEMORY:
            self.memory = max(self.memory, cycle) + max(
                1, instruction.width // (8 if instruction.name in SHARED else 4)
            )
            done, read = self.memory + SHARED_LATENCY, self.memory + 8
        else:
            self.pipes[unit][_pipe(instruction)] = cycle + _issue_cycles(instruction)
        if instruction.name in LOADS:
            self.port = max(self.port, cycle) + 32 * instruction.width / PORT_BYTES
            done = int(max(cycle, self.port - 10)) + self.latency
            self.flight += 32.0 * instruction.width * (done - cycle)
        for board, until in ((instruction.writes, done), (instruction.reads, read)):
            if board != 7:
                self.boards[warp][board] = max(self.boards[warp][board], until)
        self.ready[warp] = cycle + instruction.stall
        self.at[warp] = (self.at[warp] + 1) % len(self.body)
        if self.at[warp] == 0:
            self.ends[warp].append(cycle)
        self.finished = max(self.finished, done)
        if instruction.name == "BAR":
            self.waiting.add(warp)
            mates = range(warp // self.block * self.block, (warp // self.block + 1) * self.block)
            if self.waiting.issuperset(mates):
                for mate in mates:
                    self.ready[mate] = max(self.ready[mate], cycle + BARRIER_CYCLES)
                self.waiting.difference_update(mates)


def _pipe(instruction: Instruction) -> str:
    if instruction.name in ("MUFU", "HMMA"):
        return instruction.name
    return "fma" if instruction.name in _FULL_RATE else "integer"


def _issue_cycles(instruction: Instruction) -> int:
    """Cycles until a pipe takes the next instruction."""
    if instruction.name == "HMMA":
        return max(1, instruction.macs // (TENSOR_MACS // 2 if instruction.is_tf32 else TENSOR_MACS))
    return 1 if instruction.name in _FULL_RATE else 2
