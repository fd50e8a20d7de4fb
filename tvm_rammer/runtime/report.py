"""What a compilation did, as figures and as text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from ..compilation.record import Compilation
from ..device import DeviceSpec
from ..ir import RGraph, RProgram, Run
from ..wavefront import (
    RPROGRAMS,
    Way,
    lower_bound,
    place_views,
    predict_ways,
    schedule,
    schedule_loop,
    simulate,
)
from ..wavefront.plan.dependences import count_unknown
from ..wavefront.policies.waves import waves


def report(record: Compilation) -> dict[str, Any]:
    """Return the figures of a compilation.

    Returns
    -------
    dict
        Counts; `makespan_us`: the predicted time of all rPrograms; `lower_bound_us`: what no plan of these kernels can
        beat, both in microseconds. `ways`: on a GPU, by the name of a region, what else it could run as, and predicted
        times. `views`: calls that would only copy, and that placement makes superfluous. `dependences_on_all_rtasks`
        counts those where nothing finer could be proven.
    """
    calls = sum(len(g.operators) for g in record.graphs)
    graphs = [place_views(g, record.copies) for g in record.graphs]
    roperators = sum(len(p.graph.operators) for p in record.programs)
    makespan_us = sum(p.makespan_us for p in record.programs)
    coarse, dependences = (sum(n) for n in zip((0, 0), *(count_unknown(p) for p in record.programs), strict=True))
    return {
        "device": record.device.name,
        "arch": record.device.arch,
        "policy": record.policy,
        "sync": record.sync,
        "operators": record.operators,
        "roperators": roperators,
        "views": calls - roperators,
        "rkernels_considered": sum(len(made) for made in record.kernels.values()),
        "rkernels_dropped": dict(sorted(record.dropped.items())),
        "regions": len(record.graphs),
        "waves": sum(len(waves(g.predecessors())) for g in graphs),
        "veus": record.veus,
        "stock_launches": calls + len(record.stock_calls),
        "launches": len(record.programs) + len(record.stock_calls),
        "rprogram_launches": len(record.programs),
        "left_to_stock": len(record.stock_calls),
        "rtasks": sum(k.num_rtasks for p in record.programs for k in p.kernels),
        "waits": sum(p.waits() for p in record.programs),
        "dependences": dependences,
        "dependences_on_all_rtasks": coarse,
        "makespan_us": round(makespan_us, 1),
        "lower_bound_us": round(_bound_us(graphs, record), 1),
        "workspace_bytes": sum(p.workspace_bytes for p in record.programs),
        "resources": record.resources,
        "ways": {name: {way.name: round(way.us, 1) for way in ways} for name, ways in _ways_of(record)},
    }


def _ways_of(record: Compilation) -> Iterator[tuple[str, tuple[Way, ...]]]:
    """The regions that could run otherwise on a GPU, by name: no loops, no models with vEUs of their own."""
    programs = iter(record.programs)
    for graph, count in zip(record.graphs, record.programs_per_region, strict=True):
        planned = list(islice(programs, count))
        if record.device.kind == "cuda" and graph.steps == 1 and record.shares is None:
            yield graph.name, predict_ways(graph, record.kernels, record.device, planned)


def _bound_us(graphs: Sequence[RGraph], record: Compilation) -> float:
    device, veus = record.device, max(record.device.units, record.veus)
    return sum(lower_bound(g, record.kernels, device, veus=veus).best_us for g in graphs)


def explain(record: Compilation) -> str:
    """Tell what each operator became and why, and what was left to stock TVM and why."""
    facts = report(record)
    lines = [
        f"{facts['operators']} operators, fused to {facts['stock_launches']} calls, "
        f"became {facts['rprogram_launches']} rPrograms and {facts['left_to_stock']} stock calls "
        f"for {facts['device']} ({facts['arch']}, {facts['veus']} vEUs).",
        f"Policy {record.policy}, sync {record.sync}: {facts['waves']} waves, {facts['rtasks']} rTasks, "
        f"{facts['waits']} waits, predicted {facts['makespan_us']} us; no plan of these kernels takes less than "
        f"{facts['lower_bound_us']} us.",
    ]
    if facts["views"]:
        lines.append(f"Of the calls {facts['views']} would only copy: their data is made, or read, in place.")
    if facts["dependences_on_all_rtasks"]:
        lines.append(
            f"{facts['dependences_on_all_rtasks']} of {facts['dependences']} dependences between operators wait for "
            "all rTasks: nothing finer could be proven of their code."
        )
    dropped = ", ".join(f"{count} {reason}" for reason, count in sorted(record.dropped.items()) if count)
    lines.append(
        f"{facts['rkernels_considered']} rKernels were considered" + (f"; dropped: {dropped}." if dropped else ".")
    )
    for program, graph in zip(record.programs, _regions_of(record), strict=True):
        lines += ["", *_explain_program(program, graph, record)]
    lines += [line for name, ways in _ways_of(record) for line in _explain_ways(name, ways)]
    lines += ["", "Left to stock TVM:" if record.stock_calls else "Nothing was left to stock TVM."]
    lines += [f"  {name}: {reason}" for name, reason in record.stock_calls]
    return "\n".join(lines)


def _explain_ways(name: str, ways: Sequence[Way]) -> Iterator[str]:
    """What else a region could run as, by predicted times, and what is best."""
    listed = ", ".join(f"{way.name} {way.us:.1f} us ({way.kernels} kernels)" for way in ways)
    ours_us = next(way.us for way in ways if way.name == RPROGRAMS)
    yield ""
    yield f"Ways to run {name}, predicted: {listed}."
    if ours_us > ways[0].us:
        yield (
            f"  It runs as {RPROGRAMS} all the same, which is predicted to take {ours_us - ways[0].us:.1f} us more "
            f"than {ways[0].name}: another policy may be faster (docs/scheduling.md), and only a GPU can tell."
        )


def _regions_of(record: Compilation) -> list[RGraph]:
    """The graph of each program's region."""
    return [g for g, count in zip(record.graphs, record.programs_per_region, strict=True) for _ in range(count)]


def _why_fewer(program: RProgram, graph: RGraph, record: Compilation) -> str:
    """Why a program has fewer lanes than there are vEUs: what more of them would save, and what they would risk."""
    device, cost, veus = record.device, record.cost, record.device.units
    careless, copies, options = replace(cost, wake_us=0.0), record.copies, record.options
    if graph.steps > 1:
        plans = schedule_loop(graph, record.kernels, device, veus=veus, cost=careless, options=options, copies=copies)
    else:
        plans = schedule(
            graph, record.kernels, device, veus=veus, policy=record.policy, sync=record.sync, cost=careless,
            options=options, copies=copies,
        )  # fmt: skip
    saved_us = program.makespan_us - sum(plan.makespan_us for plan in plans)
    why = "more are predicted to be no faster"
    if saved_us > 0:
        brief = len(program.lanes) == 1 and saved_us <= cost.wake_us
        risk_us = sum(cost.risk_us(plan, brief=brief) for plan in plans)
        more = max(len(plan.lanes) for plan in plans)
        why = f"{more} would save {saved_us:.1f} us, less than the {risk_us:.1f} us that waking and waiting may cost"
    return f"on {len(program.lanes)} of {veus} vEUs: {why}"


def _where_weights_are(program: RProgram, device: DeviceSpec) -> Iterator[str]:
    """How many bytes of constants each vEU of a loop keeps on chip, and reads in every step, and from which cache."""
    kept, read = [], []
    for lane in program.lanes:
        runs = [run for run in lane if isinstance(run, Run)]
        kept.append(sum(_kept_bytes(program, run) for run in runs))
        # Two operators that read the same part of a constant read it from the same cache.
        parts = {part: nbytes for run in runs for part, nbytes in _parts_read(program, run)}
        read.append(sum(parts.values()))
    if any(kept):
        room = device.shared_bytes_of(-(-len(program.lanes) // device.units)) >> 10
        yield f"weights that each vEU keeps in shared memory over all steps: {_kib(kept)} KiB, of {room} that it has"
    if any(read) or not any(kept):
        if device.unit_gbps and max(read) <= device.unit_bytes:
            where = "which its own cache keeps"
        elif sum(read) <= device.cache_bytes:
            where = "which come from the cache that all share"
        else:
            where = "more than all caches: they come from memory"
        yield f"weights that each vEU reads in every step: {_kib(read)} KiB, {where}"


def _kept_bytes(program: RProgram, run: Run) -> int:
    slices = program.kernels[run.operator].slices
    return slices.nbytes * run.count if slices and run.kept is not None else 0


def _parts_read(program: RProgram, run: Run) -> Iterator[tuple[tuple[int, Run], float]]:
    """Each part of a constant that the rTasks of a `Run` read from beyond their vEU, and its bytes."""
    op, kernel = program.graph.operators[run.operator], program.kernels[run.operator]
    kept = kernel.slices.parameter if kernel.slices and run.kept is not None else None
    for number, b in enumerate(op.inputs):
        buffer = program.graph.buffers[b]
        if buffer.kind == "constant" and number != kept:
            yield (b, replace(run, operator=0)), buffer.nbytes * run.count / kernel.num_rtasks


def _kib(nbytes: Sequence[float]) -> str:
    return " to ".join(f"{n / 1024:.0f}" for n in dict.fromkeys((min(nbytes), max(nbytes))))


def _explain_program(program: RProgram, graph: RGraph, record: Compilation) -> list[str]:
    busy = simulate(program, record.cost).utilisation
    loop, each = ("", "") if program.steps == 1 else (f" of each of {program.steps} steps", " a step")
    if program.graph.trip_count is not None or program.exit is not None:
        loop = f" of each of at most {program.steps} steps"
    lines = [
        f"{program.name}: {len(program.graph.operators)} rOperators{loop} in one launch, "
        f"{program.waits()} waits{each}, workspace {program.workspace_bytes / 1024:.0f} KiB, "
        f"predicted {program.makespan_us:.1f} us, vEUs busy for {busy:.0%} of it"
    ]
    if len(program.lanes) < record.device.units and record.device.wake_us:
        lines.append(f"  {_why_fewer(program, graph, record)}")
    if program.brief:
        lines.append(f"  brief: threads that sleep are not woken for it, which takes {record.device.wake_us:.0f} us")
    if loop:
        lines += [f"  {line}" for line in _where_weights_are(program, record.device)]
    if program.name in record.resources:
        lines.append("  " + ", ".join(f"{k} {v}" for k, v in record.resources[program.name].items()))
    width = max((len(op.name) for op in program.graph.operators), default=0)
    for op, kernel in zip(program.graph.operators, program.kernels, strict=True):
        candidates = record.kernels[op.function]
        fastest = min(k.rtask_us * -(-k.num_rtasks // len(program.lanes)) for k in candidates)
        ours = kernel.rtask_us * -(-kernel.num_rtasks // len(program.lanes))
        why = "fastest alone" if ours <= fastest * 1.001 else "less work: others need the vEUs"
        others = Counter(k.num_rtasks for k in candidates if k.name != kernel.name)
        seen = ", ".join(str(n) for n in sorted(others)) or "none"
        source = "measured" if kernel.measured else "predicted"
        lines.append(
            f"  {op.name:<{width}}  {kernel.num_rtasks:>5} rTasks of {kernel.rtask_us:8.2f} us ({source}): {why}; "
            f"other numbers of rTasks: {seen}"
        )
    return lines
