"""Is a tiny program right? Every state that can be reached is looked at, with what each byte holds in it."""

import collections
from dataclasses import dataclass

from tvm_rammer.ir import RProgram, Run, Signal, Wait

from ..tiled_graphs import touched

Holds = tuple[int, ...]
"""For each buffer the bytes that hold its result: in the workspace by their offset there, else by their own number."""


@dataclass(frozen=True, slots=True)
class _State:
    at: tuple[int, ...]
    running: tuple[bool, ...]
    holds: Holds


def is_right_in_all_states(program: RProgram) -> bool:
    """Whether each rTask runs once and, in every interleaving, reads what it should, and no lane waits for ever."""
    counted = collections.Counter(
        (i.operator, index) for lane in program.lanes for i in lane if isinstance(i, Run) for index in i.indices()
    )
    if counted != {(o, i): 1 for o, kernel in enumerate(program.kernels) for i in range(kernel.num_rtasks)}:
        return False
    lanes = len(program.lanes)
    start = _State((0,) * lanes, (False,) * lanes, (0,) * len(program.graph.buffers))
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        moves = [_step(program, state, v) for v in range(lanes) if _may_step(program, state, v)]
        if None in moves or (not moves and any(n < len(i) for n, i in zip(state.at, program.lanes, strict=True))):
            return False
        todo += [move for move in dict.fromkeys(moves) if move not in seen]
        seen.update(moves)
    return True


def _may_step(program: RProgram, state: _State, v: int) -> bool:
    if state.at[v] == len(program.lanes[v]):
        return False
    wait = program.lanes[v][state.at[v]]
    given = [
        i.event for lane, n in zip(program.lanes, state.at, strict=True) for i in lane[:n] if isinstance(i, Signal)
    ]
    return not isinstance(wait, Wait) or given.count(wait.event) >= wait.arrivals


def _step(program: RProgram, state: _State, v: int) -> _State | None:
    """What comes next if lane `v` takes a step; None if it reads what it should not."""
    instruction = program.lanes[v][state.at[v]]
    holds, begins = state.holds, isinstance(instruction, Run) and not state.running[v]
    if isinstance(instruction, Run):
        op = program.graph.operators[instruction.operator]
        for p, b in enumerate(op.inputs):
            mask = _bytes_of(program, instruction, p, b)
            if program.graph.buffers[b].kind != "input" and mask & ~holds[b]:
                return None
        # While it is being written a byte holds nobody's result.
        for p, b in enumerate(op.outputs, len(op.inputs)):
            holds = _written(program, holds, b, _bytes_of(program, instruction, p, b), done=not begins)
    at = state.at if begins else (*state.at[:v], state.at[v] + 1, *state.at[v + 1 :])
    return _State(at, (*state.running[:v], begins, *state.running[v + 1 :]), holds)


def _written(program: RProgram, holds: Holds, buffer: int, mask: int, *, done: bool) -> Holds:
    shared = program.offsets if buffer in program.offsets else {buffer: 0}
    left = [held & ~mask if b in shared else held for b, held in enumerate(holds)]
    left[buffer] |= mask if done else 0
    return tuple(left)


def _bytes_of(program: RProgram, run: Run, parameter: int, buffer: int) -> int:
    kernel, op = program.kernels[run.operator], program.graph.operators[run.operator]
    shape, written = program.graph.buffers[buffer].shape, parameter >= len(op.inputs)
    cells = {int(c) for i in run.indices() for c in touched(kernel, parameter, shape, i, written=written)}
    return sum(1 << c for c in cells) << program.offsets.get(buffer, 0)
