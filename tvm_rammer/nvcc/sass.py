"""The code of a kernel as ptxas made it: its instructions with their scoreboards, and its loops. No GPU is needed."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import MissingToolError, ToolError

LOADS, SHARED = {"LDG", "LD", "LDGSTS"}, {"LDS", "LDSM", "STS", "ATOMS"}
MEMORY = {*LOADS, *SHARED, "STG", "ST", "LDL", "STL", "SHFL", "RED", "ATOM", "ATOMG"}

_TENSOR_SHAPES = {"16816": 64, "1688": 32, "884": 8}
"""Multiply-adds of a thread's share of a matrix instruction: m16n8k16 has 2,048 for a warp."""

_WARP = 32


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
    macs : int
        Multiply-adds of floating point of a thread.
    predicated : bool
        Whether a predicate decides if it is executed.
    text : str
        Its opcode with suffixes and operands.
    """

    name: str
    width: int = 4
    target: str = ""
    stall: int = 1
    writes: int = 7
    reads: int = 7
    waits: int = 0
    macs: int = 0
    predicated: bool = False
    text: str = ""

    @property
    def is_tf32(self) -> bool:
        """Whether it multiplies matrices of single precision: at half the rate of those of half precision."""
        return self.name == "HMMA" and ".TF32" in self.text


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
        """The shortest loop that loads from global memory, and multiplies if any loop does; of several the busiest."""
        loading = [s for s in self.loops() if any(i.name in LOADS for i in self._within(s))]
        multiplying = [s for s in loading if any(i.macs for i in self._within(s))]
        found: list[tuple[int, int]] = []
        for first, last in multiplying or loading:
            if not any(first <= a and b <= last for a, b in found):
                found.append((first, last))
        return max(found, key=lambda s: work_of(self._within(s)), default=None)

    def body(self, span: tuple[int, int], inner_passes: int = 1) -> list[Instruction]:
        """What one pass of a loop issues; loops within it run `inner_passes` times."""
        return self._once(span, {s: inner_passes for s in self.loops() if s != span})

    def whole(self, main: tuple[int, int] | None = None, inner_passes: int = 1) -> list[Instruction]:
        """What the kernel issues if each loop runs once, those within the main loop `inner_passes` times."""
        inner = {s: inner_passes for s in self.loops() if main and main[0] <= s[0] and s[1] <= main[1] and s != main}
        exits = (at for at, i in enumerate(self.code) if i.name == "EXIT" and not i.predicated)
        return self._once((0, next(exits, len(self.code) - 1)), inner)

    def _within(self, span: tuple[int, int]) -> Sequence[Instruction]:
        return self.code[span[0] : span[1] + 1]

    def _once(self, span: tuple[int, int], passes: Mapping[tuple[int, int], int]) -> list[Instruction]:
        """The code from one instruction to another; outermost of the loops in `passes` run so often."""
        first, last = span
        inner = [s for s in passes if first <= s[0] and s[1] <= last and s != span]
        outermost = [s for s in inner if not any(o != s and o[0] <= s[0] and s[1] <= o[1] for o in inner)]
        code: list[Instruction] = []
        at = first
        for begin, end in sorted(outermost):
            if begin >= at:
                code += [*self.code[at:begin], *(self.code[begin : end + 1] * passes[begin, end])]
                at = end + 1
        return [*code, *self.code[at : last + 1]]


def work_of(code: Sequence[Instruction]) -> tuple[int, int]:
    """Multiply-adds, and bytes of global loads, of a thread."""
    return sum(i.macs for i in code), sum(i.width for i in code if i.name in LOADS)


def step_macs(kernel: str) -> int:
    """Multiply-adds of a thread in a step of K, as the name of a product's rKernel says: 0 where it is none."""
    choices = {name: int(value) for name, value in re.findall(r"_([a-z]+?)(\d+)(?=_|$)", kernel)}
    if "slices" not in choices:
        return 0
    threads = _WARP if re.search("_(mma|tf32)_", kernel) else 1  # that share a tile of sums
    return choices["mi"] * choices["mj"] * choices["k"] // (threads * choices["slices"])


def inner_passes(code: Kernel, span: tuple[int, int], macs: int) -> int:
    """How often a loop within the main loop runs, if a pass through that has so many multiply-adds."""
    once, twice = (work_of(code.body(span, n))[0] for n in (1, 2))
    return 1 if once == twice or not macs else max(1, 1 + (macs - once) // (twice - once))


def branches_between_loads(body: Sequence[Instruction]) -> int:
    """Branches that stand between two global loads without a barrier between them: they keep the loads apart."""
    branches = since = 0
    started = False
    for instruction in body:
        if instruction.name in LOADS:
            branches += since if started else 0
            since, started = 0, True
        elif instruction.name == "BAR":
            since, started = 0, False
        elif instruction.name == "BRA":
            since += 1
    return branches


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
            elif found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+\s+)?(\S+)(.*?);\s+/\* 0x\w+ \*/", row):
                code.append(_instruction(found[2], found[3], bool(found[1])))
            elif code and (found := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", row)):
                code[-1] = _controlled(code[-1], int(found[1], 16) >> 41)
        if name is not None:
            kernels[name[0]] = Kernel(tuple(code), labels)
    return kernels


def _instruction(opcode: str, operands: str, predicated: bool) -> Instruction:
    widths = {"88.4": 16, "88.2": 8, ".128": 16, ".64": 8, ".U16": 2, ".S16": 2, ".U8": 1}  # the first two of LDSM
    width = next((n for key, n in widths.items() if key in opcode), 4)
    target = re.search(r"`\((\.L_\w+)\)", operands)
    name, _, suffix = opcode.partition(".")
    return Instruction(
        name, width, target[1] if target else "", macs=_macs(name, suffix, operands), predicated=predicated,
        text=opcode + operands,
    )  # fmt: skip


def _macs(name: str, suffix: str, operands: str) -> int:
    if name == "HMMA":
        return _TENSOR_SHAPES.get(suffix.partition(".")[0], 0)
    if name == "HFMA2" and "-RZ, RZ," in operands:  # how ptxas sets a register to a number
        return 0
    return {"FFMA": 1, "DFMA": 1, "HFMA2": 2}.get(name, 0)


def _controlled(i: Instruction, bits: int) -> Instruction:
    return replace(i, stall=max(1, bits & 15), writes=bits >> 5 & 7, reads=bits >> 8 & 7, waits=bits >> 11 & 63)
