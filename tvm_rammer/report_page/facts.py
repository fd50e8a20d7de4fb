"""The figures of a page: its header, and the tables of kernels, of what was left to stock TVM, and of contenders."""

import importlib.metadata
import platform
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..compilation.record import Compilation
from ..ir import Buffer, BufferKind, RGraph, RKernel, RProgram
from ..version import VERSION
from ..wavefront import Timeline, lower_bound
from ..wavefront.show.boxes import operator_colour
from .lanes import shortened

MOST_KERNELS = 2_000
MOST_STOCK_CALLS = 500


def header(
    record: Compilation, planned: Sequence[Timeline], measured: Sequence[Timeline] | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures above the lanes; times in microseconds, launches not counted.

    Parameters
    ----------
    record : Compilation
    planned, measured : sequence of Timeline
        Of each program; None where it was not measured.
    facts : mapping
        `runtime.report.report` of the record.
    """
    device = record.device
    launches_us = device.launch_us * sum(bool(graph.operators) for graph in record.graphs)
    return {
        "device": device.processor or device.name,
        "target": f"{device.name} ({device.arch})" if device.kind == "cpu" else device.arch,
        "veus": facts["veus"],
        "policy": record.policy,
        "versions": versions(),
        "planned_us": sum(t.makespan_us for t in planned),
        "measured_us": None if measured is None else sum(t.makespan_us for t in measured),
        "bound_us": max(0.0, facts["lower_bound_us"] - launches_us),
        "busy": _busy(record.programs, measured or planned),
        "operators": facts["operators"],
        "roperators": facts["roperators"],
        "views": facts["views"],
        "rtasks": facts["rtasks"],
        "waits": facts["waits"],
        "launches": facts["launches"],
        "stock_launches": facts["stock_launches"],
        "programs": len(record.programs),
        "launch_us": device.launch_us,
    }


def versions() -> dict[str, str]:
    """What made the page."""
    return {
        "tvm_rammer": VERSION,
        "Apache TVM": importlib.metadata.version("apache-tvm"),
        "Python": platform.python_version(),
    }


def _busy(programs: Sequence[RProgram], timelines: Sequence[Timeline]) -> float:
    pairs = list(zip(programs, timelines, strict=True))
    area_us = sum(t.makespan_us * len(p.lanes) for p, t in pairs)
    return sum(t.utilisation * t.makespan_us * len(p.lanes) for p, t in pairs) / area_us if area_us else 0.0


def took_turns(measured: Sequence[Timeline]) -> bool:
    """Whether of several vEUs hardly ever two were busy at the same time."""
    busy_us = sum(s.end_us - s.start_us for t in measured for s in t.spans if s.kind == "run")
    together_us = sum(t.makespan_us for t in measured)
    return any(len(t.wait_us) > 1 for t in measured) and busy_us <= 1.02 * together_us


@dataclass(slots=True)
class _Use:
    """What one kernel is used for, over all rPrograms."""

    kernel: RKernel
    calls: int = 0
    planned_us: float = 0.0
    bound_us: float = 0.0


def kernel_rows(
    record: Compilation, planned: Sequence[Timeline], rtask_us: Mapping[str, float] | None
) -> list[dict[str, Any]]:
    """The kernels in use, those first that take most time.

    Parameters
    ----------
    record : Compilation
    planned : sequence of Timeline
        The simulated run of each program.
    rtask_us : mapping of str to float, optional
        The measured time of an rTask of each kernel, by name.

    Returns
    -------
    list of dict
        Times are vEU time in microseconds: of all rTasks of all calls, one after another. `bound_us` is what no choice
        among the kernels that were considered can beat: the least work of any, or the bytes that must move.
    """
    uses: dict[str, _Use] = {}
    bounds: dict[str, float] = {}
    for program, timeline in zip(record.programs, planned, strict=True):
        time_us: dict[int, float] = defaultdict(float)
        for span in timeline.spans:
            if span.kind == "run":
                time_us[span.operator] += span.end_us - span.start_us
        for o, kernel in enumerate(program.kernels):
            use = uses.setdefault(kernel.name, _Use(kernel))
            if kernel.function not in bounds:
                bounds[kernel.function] = _bound_us(program.graph, o, record, len(program.lanes))
            use.calls += 1
            use.planned_us += time_us[o]
            use.bound_us += bounds[kernel.function]
    rows = [_row(use, record, rtask_us) for use in uses.values()]
    took = "planned_us" if rtask_us is None else "measured_us"
    rows.sort(key=lambda row: -row[took])
    total_us = sum(row[took] for row in rows)
    for number, row in enumerate(rows):
        row["share"] = row[took] / total_us if total_us else 0.0
        row["colour"] = operator_colour(number)
    return rows


def _row(use: _Use, record: Compilation, rtask_us: Mapping[str, float] | None) -> dict[str, Any]:
    kernel = use.kernel
    return {
        "name": kernel.name,
        "function": shortened(kernel.function),
        "tiling": shortened(kernel.name.removeprefix(f"{kernel.function}_").replace("_", " ")),
        "calls": use.calls,
        "rtasks": kernel.num_rtasks,
        "planned_us": use.planned_us,
        "measured_us": None if rtask_us is None else rtask_us[kernel.name] * kernel.num_rtasks * use.calls,
        "bound_us": use.bound_us,
        "tuned": kernel.measured,
        "considered": len(record.kernels.get(kernel.function, ())),
    }


def _bound_us(graph: RGraph, operator: int, record: Compilation, veus: int) -> float:
    """vEU time that an operator takes at least, alone on the device."""
    op = graph.operators[operator]
    touched = list(dict.fromkeys((*op.inputs, *op.outputs)))
    buffers = tuple(_own_buffer(graph.buffers[b], b in op.outputs) for b in touched)
    alone = RGraph(graph.name, buffers, (op.renumbered({b: n for n, b in enumerate(touched)}),))
    found = lower_bound(alone, record.kernels, record.device, veus=veus)
    return veus * max(found.area_us, found.bandwidth_us)


def _own_buffer(buffer: Buffer, written: bool) -> Buffer:
    """A buffer as an operator has it that is alone: a part of another one, too, has memory of its own."""
    kind: BufferKind = "output" if written else "constant" if buffer.kind == "constant" else "input"
    return replace(buffer, kind=kind, place=None)


def stock_rows(record: Compilation) -> list[list[Any]]:
    """The calls that were left to stock TVM: function, reason, number of calls."""
    calls = Counter(record.stock_calls)
    return [[shortened(name), reason, count] for (name, reason), count in calls.items()]


def contender_rows(comparison: Mapping[str, Any]) -> list[list[Any]]:
    """What `benchmark.bench.bench` found: name, median and 90th percentile in milliseconds, times ours, note."""
    ratios = comparison["ratios"]
    rows: list[list[Any]] = [
        [name, r["median_ms"], r["p90_ms"], ratios.get(name, 1.0), f"{r['n']} runs"]
        for name, r in comparison["results"].items()
    ]
    return rows + [[name, None, None, None, reason] for name, reason in comparison["missing"].items()]
