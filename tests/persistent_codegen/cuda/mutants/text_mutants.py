"""Small wrongs done to emitted CUDA text, all in one text: `emu_mutant[number]` says which of them are done.

So the mutants of a program take one compilation, and each is what an edit of the text would be.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.emulation.programs import Built
from tvm_rammer.persistent_codegen.cuda.sync import source as sync_text


@dataclass(frozen=True)
class TextMutant:
    """A wrong text.

    Parameters
    ----------
    number : int
        Its place in `emu_mutant`.
    kind, line : str
        What was done, and the text that it was done to.
    at_start : bool
        Whether it is a barrier before which its rTask touches no memory but its own.
    for_thread_0 : bool
        Whether it is a barrier that orders nothing but accesses of thread 0.
    after : str
        The rKernel after whose rTasks it is the barrier, if it is such a one.
    branch : int
        Of the kernel, if it is the barrier before its rTasks; else -1.
    """

    number: int
    kind: str
    line: str
    at_start: bool = False
    for_thread_0: bool = False
    after: str = ""
    branch: int = -1


def mutants_of(built: Built) -> tuple[str, list[TextMutant]]:
    """A program's text with all its mutants, and their list."""
    # Only the first copy of the fixed text counts: an include guard takes the others away.
    first, *others = built.source.split(sync_text())
    mutation = _Mutation(built)
    lines = (first + sync_text() + "".join(others)).splitlines()
    return "\n".join(mutation.mutated(lines, n) for n in range(len(lines))), mutation.found


class _Mutation:
    """Reads a text line by line, and writes the wrongs into it."""

    def __init__(self, built: Built) -> None:
        self.found: list[TextMutant] = []
        self._threads = built.cuda.threads
        functions = [(f.name, k.num_rtasks) for f, k in zip(built.functions, built.program.kernels, strict=True)]
        self._names = {name for name, _ in functions}
        # The code of a single rTask does not ask for its index.
        self._single = self._names - {name for name, num_rtasks in functions if num_rtasks > 1}
        self._parameters: list[str] = []
        self._touched, self._called = False, ""

    def mutated(self, lines: Sequence[str], n: int) -> str:
        line = lines[n]
        if line.lstrip().startswith(("//", "__device__", "template")):
            return line
        if line.startswith('extern "C"'):
            self._parameters, self._touched = re.findall(r"\w+_ptr\b", line), False
            return line
        original = line
        for pattern, wrong, kind in _WRONGS:
            match = re.search(pattern, original)
            if match and not (kind == OTHER_RTASK and self._call(original) in self._single):
                right = match[1]
                # The last one: those before it stand in mutants that were made already.
                before, _, after = line.rpartition(right)
                number = self._add(kind, original)
                line = f"{before}(emu_mutant[{number}] ? {wrong.replace('@', right)} : {right}){after}"
        for call in re.findall(r"rammer_rtask_barrier\(1, \d+\);|rammer_block_barrier\(\);|__syncwarp\(\);", original):
            for_thread_0 = _orders_only_thread_0(lines, n, self._parameters)
            line = line.replace(call, self._barrier(call, original, for_thread_0, self._branch(lines, n)), 1)
        self._touched = self._touched or bool(set(self._parameters) & set(re.findall(r"\w+", original)))
        if not original.lstrip().startswith("if ("):
            self._called = self._call(original)
        return line

    def _call(self, line: str) -> str:
        name = line.strip().partition("(")[0]
        return name if name in self._names else ""

    def _branch(self, lines: Sequence[str], n: int) -> int:
        """The number of the branch whose rTasks come after a barrier; branches come in the order of their numbers."""

        def begins(n: int) -> bool:
            piece = itertools.takewhile(lambda line: "rammer_block_barrier();" not in line, lines[n + 1 :])
            return any(map(self._call, piece))

        barriers = [m for m in range(n + 1) if "rammer_block_barrier();" in lines[m] and begins(m)]
        return len(barriers) - 1 if n in barriers else -1

    def _add(self, kind: str, line: str, **about: object) -> int:
        self.found.append(TextMutant(len(self.found) + 1, kind, line.strip(), **about))
        return len(self.found)

    def _barrier(self, call: str, line: str, for_thread_0: bool, branch: int) -> str:
        name, others = call.partition("(")[0], []
        if count := re.search(r"\(1, (\d+)\)", call):
            others = [f"{name}(1, {n});" for n in (int(count[1]) - 32, int(count[1]) + 32) if n > 0]
        elif name == "rammer_block_barrier" and self._threads > 32:
            others = [f"__barrier_sync_count(0, {self._threads - 32});"]
        left_out = self._add(
            f"{name} left out", line, at_start=not self._touched, for_thread_0=for_thread_0, after=self._called,
            branch=branch,
        )  # fmt: skip
        text = f"if (emu_mutant[{left_out}]) {{}} "
        for other in others:
            number = self._add(f"{name} of another count", line, after=self._called)
            text += f"else if (emu_mutant[{number}]) {{ {other} }} "
        return f"{text}else {{ {call} }}"


def last_warp_waits(source: str) -> str:
    """The text of a kernel with the last warp of each block waiting in the place of the first."""
    threads = re.findall(r"__launch_bounds__\((\d+)", source)[-1]
    waits = "(((int)threadIdx.x) < 32) & waits_ptr[0]"
    return source.replace(waits, f"({int(threads) - 32} <= ((int)threadIdx.x)) & waits_ptr[0]")


def _orders_only_thread_0(lines: Sequence[str], barrier: int, parameters: Sequence[str]) -> bool:
    """Whether after a barrier, up to the next, only thread 0 touches memory, and none of what others touched before.

    Both pieces must be straight text, but for branches that begin and end in them.
    """
    before = _accesses(list(reversed(lines[:barrier])), parameters, backwards=True)
    after = _accesses(lines[barrier + 1 :], parameters)
    if before is None or after is None:
        return False
    return not after[1] and not after[0] & before[1]


def _accesses(
    lines: Sequence[str], parameters: Sequence[str], *, backwards: bool = False
) -> tuple[set[str], set[str]] | None:
    """What thread 0 alone and what all touch up to the next barrier; None if a block ends or begins between."""
    piece = list(itertools.takewhile(lambda line: "rammer_rtask_barrier" not in line, lines))
    if backwards:
        piece.reverse()
    alone, everyone, depth, alone_at = set(), set(), 0, None
    for line in piece:
        depth -= line.strip().startswith("}")
        if depth < 0:
            return None
        alone_at = None if alone_at is not None and depth <= alone_at else alone_at
        touched = set(parameters) & set(re.findall(r"\w+", line))
        (everyone if alone_at is None else alone).update(touched)
        if line.endswith("{"):
            alone_at = depth if line.strip() == "if (tid == 0) {" else alone_at
            depth += 1
    return (alone, everyone) if depth == 0 else None


OTHER_RTASK = "index of an rTask + 1"

ASKED = ("the next row's counters taken for done", "a row takes its own counters for those of the next")

_WRONGS = (
    (r"__nv_atomic_add\(state \+ word, (1),", "2", "a signal counts twice"),
    (r"(__NV_ATOMIC_RELEASE)", "__NV_ATOMIC_RELAXED", "release -> relaxed"),
    (r"(__NV_ATOMIC_ACQUIRE)", "__NV_ATOMIC_RELAXED", "acquire -> relaxed"),
    (r"(__NV_THREAD_SCOPE_DEVICE)", "__NV_THREAD_SCOPE_BLOCK", "scope of the device -> of the block"),
    (r"(\(unsigned\)arrivals \* \(unsigned\)run)", "(unsigned)arrivals", "target of a wait without the run"),
    (r"(\(unsigned\)arrivals \* \(unsigned\)run)", "((unsigned)arrivals * (unsigned)run - 1)", "target of a wait - 1"),
    (r"(\(unsigned\)arrivals \* \(unsigned\)run)", "((unsigned)arrivals * (unsigned)run + 1)", "target of a wait + 1"),
    (r"waiting = looking && (lane < waits) &&", "lane + 1 < waits", "a row does not wait for the last of its counters"),
    (r"(\(threadIdx.x & 31\) < waits && word >= 0 && ahead < 0)", "false", "no row waits"),
    (r"looking \? (word) : 0\);", "(@ + 32)", "a wait for the counter of the next event"),
    (r"return (looked \? seen : -1);", "0", ASKED[0]),
    (r"__shfl_down_sync\(0xffffffffu, seen, (waits)\)", "0", ASKED[1]),
    (r"\((state \+ word)\b", "(@ + 32)", "a signal to the counter of the next event"),
    (r"\bint run = (rammer_run_number\(.*\));", "(@ + 1)", "number of the run + 1"),
    (r"\bint last = (.*);", "(@ - 1)", "the last row of a lane left out"),
    (r"following_ptr\[0\] = rows_ptr\[(.*)\];", "(@ + 32)", "the row after the next"),
    (r"\(start(?:_\d+)? \+ (\(v_\d+ \* step(?:_\d+)?\))", "(@ + 1)", OTHER_RTASK),
)
