"""What the rows and texts of a program say of wrongs that change nothing."""

import itertools
import re
from collections.abc import Iterator

import numpy as np

from tests.emulation.programs import Built
from tests.persistent_codegen.cuda.read_rows import MARKS, form_of, groups_of, rows_of
from tvm_rammer.ir import Run, Wait


def runs_of(built: Built, branch: int) -> Iterator[tuple[np.ndarray, int, list[int]]]:
    """Each row that takes a branch of the kernel, with its operator and those that the lane has run before."""
    form = form_of(built)
    for lane, rows in zip(built.program.lanes, rows_of(built), strict=True):
        taken = [row for row in rows if row[form.what] >= 0]
        operators = [i.operator for i in lane if isinstance(i, Run)]
        for n, (row, operator) in enumerate(zip(taken, operators, strict=True)):
            if row[form.what] // MARKS == branch:
                yield row, operator, operators[:n]


def needs_nothing_before(built: Built, branch: int) -> bool:
    """Whether rows that take a branch of the kernel wait for nothing, and share nothing with earlier ones of the lane.

    They read nothing that these write, and not both have memory of their rTasks' own.
    """
    waits, before = form_of(built).waits, built.program.graph.predecessors()
    scratch = [bool(function.scratch) for function in built.functions]
    return not any(
        (row[:waits] >= 0).any()
        or set(before[operator]) & set(earlier)
        or (scratch[operator] and any(scratch[o] for o in earlier))
        for row, operator, earlier in runs_of(built, branch)
    )


def reads_late(built: Built, branch: int) -> bool:
    """Whether the rTasks of a branch read what others have written behind a barrier of their own alone."""
    graph = built.program.graph
    for _, operator, _ in runs_of(built, branch):
        name = built.functions[operator].name
        text = built.source[built.source.rindex(f"void {name}(") :]
        parameters, body = text[: text.index("{")], text[text.index("{") : text.index("\n}\n")]
        head, barrier, _ = body.partition("rammer_rtask_barrier")
        names = re.findall(r"\bp(\d+)_\w+_ptr", parameters)
        op = graph.operators[operator]
        made = {str(n) for n, b in enumerate((*op.inputs, *op.outputs)) if graph.buffers[b].kind == "intermediate"}
        if not barrier or len(names) != len(op.inputs) + len(op.outputs):
            return False
        if made & set(re.findall(r"\bp(\d+)_\w+_ptr", head)):
            return False
    return True


def most_rtasks_of_a_run(built: Built, function: str) -> int:
    """How many rTasks of a function the longest run has."""
    runs = [i for _, _, i in built.program.instructions() if isinstance(i, Run)]
    return max(run.count for run in runs if built.functions[run.operator].name == function)


def rows_follow_waits(program) -> bool:
    """Whether some row that waits follows another one that does."""
    lanes = (itertools.pairwise(groups_of(lane)) for lane in program.lanes)
    return any(all(isinstance(row[0], Wait) for row in pair) for lane in lanes for pair in lane if all(pair))
