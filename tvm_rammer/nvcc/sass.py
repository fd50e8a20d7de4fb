"""The loops of a kernel in its SASS, and how fast a unit would issue them: what can be known without a GPU.

The model: one block on one unit, its warps dealt to four schedulers that issue one instruction a cycle each, each
instruction when the stall count, the scoreboards and the wait mask that ptxas gave it allow; floating point at full
rate, integers at half; one pipe a unit for all memory, with a cycle for each 128 bytes; one latency for all global
loads, behind a port of 64 bytes a cycle; block barriers. Caches, bank conflicts, divergence, the instruction cache and
other blocks are not in it. It was never compared with hardware: it says which of two kernels is better, not how fast
one is.
"""

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import MissingToolError, ToolError

SCHEDULERS = 4
GLOBAL_LATENCY, SHARED_LATENCY, BARRIER_CYCLES = 280, 24, 20
"""Cycles: of a load from the last-level cache, of one from shared memory, of a barrier after its last warp."""

PORT_BYTES = 64
"""A cycle, between a unit and the last-level cache."""

_LOADS, _SHARED = {"LDG", "LD"}, {"LDS", "LDSM", "STS", "ATOMS"}
_MEMORY = {*_LOADS, *_SHARED, "STG", "ST", "LDL", "STL", "SHFL", "RED", "ATOM", "ATOMG"}
_FULL_RATE = {"FFMA", "FADD", "FMUL", "BRA", "NOP", "BAR", "BSSY", "BSYNC", "EXIT", "WARPSYNC"}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Parameters
    ----------
    name : str
        Without its suffixes.
    width : int
        Bytes that a thread loads or stores, if it does.
    target : str
        The label that it jumps to, if it does.
    stall : int
        Cycles until the warp's next instruction.
    writes, reads : int
        Scoreboards that are busy until its result is there, or its operands are read; 7 is none.
    waits : int
        A bit for each scoreboard that must be free.
    """

    name: str
    width: int = 4
    target: str = ""
    stall: int = 1
    writes: int = 7
    reads: int = 7
    waits: int = 0


@dataclass(frozen=True, slots=True)
class Kernel:
    """The code of a kernel, and at which instructions its labels are."""

    code: tuple[Instruction, ...]
    labels: dict[str, int]

    @property
    def code_bytes(self) -> int:
        """Size of the code."""
        return 16 * len(self.code)

    def loops(self) -> list[tuple[int, int]]:
        """First and last instruction of each loop, short ones first."""
        ends = ((self.labels.get(i.target, at + 1), at) for at, i in enumerate(self.code) if i.name == "BRA")
        return sorted(((first, last) for first, last in ends if first < last), key=lambda span: span[1] - span[0])

    def main_loop(self) -> tuple[int, int] | None:
        """The shortest loop that both loads from global memory and multiplies; of several the one with most to do."""
        found: list[tuple[int, int]] = []
        for first, last in self.loops():
            names = {i.name for i in self.code[first : last + 1]}
            if names & _LOADS and "FFMA" in names and not any(first <= a and b <= last for a, b in found):
                found.append((first, last))
        return max(found, key=lambda s: self._multiplications(*s), default=None)

    def body(self, span: tuple[int, int], inner_passes: int = 1) -> list[Instruction]:
        """What one pass of a loop issues; loops within it run `inner_passes` times."""
        first, last = span
        inner = [s for s in self.loops() if first <= s[0] and s[1] <= last and s != span]
        outermost = [s for s in inner if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in inner)]
        code: list[Instruction] = []
        at = first
        for begin, end in sorted(outermost):
            code += [*self.code[at:begin], *(self.code[begin : end + 1] * inner_passes)]
            at = end + 1
        return [*code, *self.code[at : last + 1]]

    def _multiplications(self, first: int, last: int) -> int:
        return sum(i.name == "FFMA" for i in self.code[first : last + 1])


def branches_between_loads(body: Sequence[Instruction]) -> int:
    """Branches that stand between two global loads without a barrier between them: they keep the loads apart."""
    branches = since = 0
    started = False
    for instruction in body:
        if instruction.name in _LOADS:
            branches += since if started else 0
            since, started = 0, True
        elif instruction.name == "BAR":
            since, started = 0, False
        elif instruction.name == "BRA":
            since += 1
    return branches


@dataclass(frozen=True, slots=True)
class Speed:
    """How a loop runs in the model: cycles of a pass, and bytes of global loads under way on average."""

    cycles: float
    bytes_in_flight: float


def simulate(body: Sequence[Instruction], warps: int, latency: int = GLOBAL_LATENCY, passes: int = 3) -> Speed:
    """Issue some passes of a loop by all warps of a block; the first one fills the pipelines and is not counted."""
    machine = _Machine(body, warps, latency)
    while min(map(len, machine.ends)) < passes:
        machine.step(passes)
    total = max(ends[-1] for ends in machine.ends)
    return Speed((total - max(ends[0] for ends in machine.ends)) / (passes - 1), machine.flight / max(1, total))


class _Machine:
    def __init__(self, body: Sequence[Instruction], warps: int, latency: int) -> None:
        self.body, self.warps, self.latency = body, warps, latency
        self.at, self.ready = [0] * warps, [0] * warps
        self.boards = [[0] * 6 for _ in range(warps)]
        self.ends: list[list[int]] = [[] for _ in range(warps)]
        self.pipes = [Counter[str]() for _ in range(SCHEDULERS)]
        self.last = [0] * SCHEDULERS
        self.waiting: set[int] = set()
        self.cycle, self.memory = 0, 0
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
        queue = [self.memory - 31] if instruction.name in _MEMORY else [self.pipes[unit][_pipe(instruction)]]
        return max([self.ready[warp], *waits, *queue])

    def _issue(self, unit: int, warp: int) -> None:
        instruction, cycle = self.body[self.at[warp]], self.cycle
        done = read = cycle + 15
        if instruction.name in _MEMORY:
            self.memory = max(self.memory, cycle) + max(
                1, instruction.width // (8 if instruction.name in _SHARED else 4)
            )
            done, read = self.memory + SHARED_LATENCY, self.memory + 8
        else:
            self.pipes[unit][_pipe(instruction)] = cycle + (1 if instruction.name in _FULL_RATE else 2)
        if instruction.name in _LOADS:
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
        if instruction.name == "BAR":
            self.waiting.add(warp)
            if len(self.waiting) == self.warps:
                self.ready = [max(r, cycle + BARRIER_CYCLES) for r in self.ready]
                self.waiting.clear()


def _pipe(instruction: Instruction) -> str:
    return "fma" if instruction.name in _FULL_RATE else instruction.name if instruction.name == "MUFU" else "integer"


def disassemble(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin.

    Raises
    ------
    MissingToolError
        nvdisasm is not on the PATH.
    ToolError
        It does not take the cubin.
    """
    tool = shutil.which("nvdisasm")
    if tool is None:
        raise MissingToolError("nvdisasm is not on the PATH; install the CUDA toolkit, or nvidia-cuda-nvdisasm by pip")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(cubin)
        done = subprocess.run([tool, "-hex", file.name], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise ToolError(f"nvdisasm does not take the cubin (status {done.returncode}): {done.stderr[:500]}")
    return parse(done.stdout)


def parse(text: str) -> dict[str, Kernel]:
    """Read what `nvdisasm -hex` prints."""
    kernels: dict[str, Kernel] = {}
    code: list[Instruction] = []
    labels: dict[str, int] = {}
    for section in re.split(r"\n\s*\.section\s+\.text\.", text)[1:]:
        name = re.match(r"[\w$]+", section)
        code, labels = [], {}
        for row in section.splitlines():
            if found := re.match(r"(\.L_\w+):", row):
                labels[found[1]] = len(code)
            elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(\S+)(.*?);\s+/\* 0x\w+ \*/", row):
                code.append(_instruction(found[1], found[2]))
            elif code and (found := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", row)):
                code[-1] = _controlled(code[-1], int(found[1], 16) >> 41)
        if name is not None:
            kernels[name[0]] = Kernel(tuple(code), labels)
    return kernels


def _instruction(opcode: str, operands: str) -> Instruction:
    widths = {".128": 16, ".64": 8, ".U16": 2, ".S16": 2, ".U8": 1}
    width = next((n for key, n in widths.items() if key in opcode), 4)
    target = re.search(r"`\((\.L_\w+)\)", operands)
    return Instruction(opcode.partition(".")[0], width, target[1] if target else "")


def _controlled(i: Instruction, bits: int) -> Instruction:
    return Instruction(i.name, i.width, i.target, max(1, bits & 15), bits >> 5 & 7, bits >> 8 & 7, bits >> 11 & 63)
