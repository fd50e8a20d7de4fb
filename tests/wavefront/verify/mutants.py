"""Small wrongs done to a plan: each function takes a program and returns another, or None where it does not apply."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tvm_rammer.ir import Instruction, RProgram, Run, Signal, Wait

Mutation = Callable[[RProgram, random.Random], RProgram | None]


def drop_a_wait(program: RProgram, rng: random.Random) -> RProgram | None:
    """Leave out one wait."""
    return _without(program, rng, Wait)


def drop_a_signal(program: RProgram, rng: random.Random) -> RProgram | None:
    """Leave out one signal."""
    return _without(program, rng, Signal)


def drop_an_rtask(program: RProgram, rng: random.Random) -> RProgram | None:
    """Leave out the last rTask of a run."""
    v, n, run = _pick(program, rng, Run)
    shorter = [replace(run, count=run.count - 1)] if run.count > 1 else []
    return with_lanes(program, {v: [*program.lanes[v][:n], *shorter, *program.lanes[v][n + 1 :]]})


def repeat_an_rtask(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let some lane do an rTask once more."""
    *_, run = _pick(program, rng, Run)
    return _inserted(program, rng, Run(run.operator, rng.choice(run.indices()), 1))


def lower_arrivals(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a wait pass one signal too early."""
    found = _pick(program, rng, Wait)
    if found is None or found[2].arrivals == 1:
        return None
    v, n, wait = found
    less = replace(wait, arrivals=wait.arrivals - 1)
    return with_lanes(program, {v: [*program.lanes[v][:n], less, *program.lanes[v][n + 1 :]]})


def raise_arrivals(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a wait be for one signal more than there are."""
    found = _pick(program, rng, Wait)
    if found is None:
        return None
    v, n, wait = found
    more = replace(wait, arrivals=wait.arrivals + 1)
    return with_lanes(program, {v: [*program.lanes[v][:n], more, *program.lanes[v][n + 1 :]]})


def repeat_a_signal(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let some lane signal an event once more: its waits are then for a part of its arrivals."""
    found = _pick(program, rng, Signal)
    return None if found is None else _inserted(program, rng, found[2])


def signal_another(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a signal be for another event."""
    found = _pick(program, rng, Signal)
    if found is None or program.num_events < 2:
        return None
    v, n, signal = found
    other = Signal(rng.choice([e for e in range(program.num_events) if e != signal.event]))
    return with_lanes(program, {v: [*program.lanes[v][:n], other, *program.lanes[v][n + 1 :]]})


def wait_for_another(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a wait be for another event."""
    found = _pick(program, rng, Wait)
    if found is None or program.num_events < 2:
        return None
    v, n, wait = found
    other = replace(wait, event=rng.choice([e for e in range(program.num_events) if e != wait.event]))
    return with_lanes(program, {v: [*program.lanes[v][:n], other, *program.lanes[v][n + 1 :]]})


def swap_instructions(program: RProgram, rng: random.Random) -> RProgram | None:
    """Exchange two instructions of a lane, mostly neighbours."""
    v = rng.randrange(len(program.lanes))
    lane = list(program.lanes[v])
    if len(lane) < 2:
        return None
    n = rng.randrange(len(lane) - 1)
    m = n + 1 if rng.random() < 0.7 else rng.randrange(len(lane))
    lane[n], lane[m] = lane[m], lane[n]
    return with_lanes(program, {v: lane})


def move_a_run(program: RProgram, rng: random.Random) -> RProgram | None:
    """Give a run to another lane."""
    if len(program.lanes) < 2:
        return None
    v, n, run = _pick(program, rng, Run)
    rest = with_lanes(program, {v: [*program.lanes[v][:n], *program.lanes[v][n + 1 :]]})
    return _inserted(rest, rng, run, rng.choice([u for u in range(len(program.lanes)) if u != v]))


def overlap_buffers(program: RProgram, rng: random.Random) -> RProgram | None:
    """Give a buffer the offset of another."""
    if len(program.offsets) < 2:
        return None
    one, other = rng.sample(sorted(program.offsets), 2)
    offset = program.offsets[other]
    end = offset + program.graph.buffers[one].nbytes
    return replace(program, offsets=program.offsets | {one: offset}, workspace_bytes=max(program.workspace_bytes, end))


def move_a_view(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let a view lie elsewhere in its buffer, or leave it."""
    views = [b for b, buffer in enumerate(program.graph.buffers) if buffer.place]
    if not views:
        return None
    b = rng.choice(views)
    place = program.graph.buffers[b].place
    offset = rng.choice((place.offset - 64, place.offset + 64, place.offset + 128))
    return _with_buffer(program, b, place=replace(place, offset=offset))


def exchange_views(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let two views lie where the other does."""
    views = [b for b, buffer in enumerate(program.graph.buffers) if buffer.place]
    if len(views) < 2:
        return None
    one, other = rng.sample(views, 2)
    places = [program.graph.buffers[b].place for b in (one, other)]
    return _with_buffer(_with_buffer(program, one, place=places[1]), other, place=places[0])


def add_an_edge(program: RProgram, rng: random.Random) -> RProgram | None:
    """Let an operator read one more buffer, all of it."""
    o = rng.randrange(len(program.graph.operators))
    op, kernel = program.graph.operators[o], program.kernels[o]
    others = {b for p in program.graph.operators for b in p.outputs} - {*op.inputs, *op.outputs}
    if not others:
        return None
    parameter = len(op.inputs)
    inputs = (*op.inputs, rng.choice(sorted(others)))
    footprints = (*kernel.footprints[:parameter], None, *kernel.footprints[parameter:]) if kernel.footprints else ()
    operators, kernels = list(program.graph.operators), list(program.kernels)
    operators[o], kernels[o] = replace(op, inputs=inputs), replace(kernel, footprints=footprints)
    return replace(program, graph=replace(program.graph, operators=tuple(operators)), kernels=tuple(kernels))


MUTATIONS: tuple[Mutation, ...] = (
    drop_a_wait, drop_a_signal, drop_an_rtask, repeat_an_rtask, lower_arrivals, raise_arrivals, repeat_a_signal,
    signal_another, wait_for_another, swap_instructions, move_a_run, overlap_buffers, add_an_edge,
)  # fmt: skip

VIEW_MUTATIONS: tuple[Mutation, ...] = (move_a_view, exchange_views)
"""For plans with views."""


def _with_buffer(program: RProgram, b: int, **changes: object) -> RProgram:
    buffers = list(program.graph.buffers)
    buffers[b] = replace(buffers[b], **changes)
    return replace(program, graph=replace(program.graph, buffers=tuple(buffers)))


def _pick(program: RProgram, rng: random.Random, kind: type) -> tuple[int, int, Instruction] | None:
    found = [(v, n, i) for v, lane in enumerate(program.lanes) for n, i in enumerate(lane) if isinstance(i, kind)]
    return rng.choice(found) if found else None


def _without(program: RProgram, rng: random.Random, kind: type) -> RProgram | None:
    if (found := _pick(program, rng, kind)) is None:
        return None
    v, n, _ = found
    return with_lanes(program, {v: [*program.lanes[v][:n], *program.lanes[v][n + 1 :]]})


def _inserted(program: RProgram, rng: random.Random, instruction: Instruction, lane: int | None = None) -> RProgram:
    v = rng.randrange(len(program.lanes)) if lane is None else lane
    n = rng.randint(0, len(program.lanes[v]))
    return with_lanes(program, {v: [*program.lanes[v][:n], instruction, *program.lanes[v][n:]]})


def with_lanes(program: RProgram, lanes: Mapping[int, Sequence[Instruction]]) -> RProgram:
    """The program with other instructions in some lanes."""
    return replace(program, lanes=tuple(tuple(lanes.get(v, lane)) for v, lane in enumerate(program.lanes)))
