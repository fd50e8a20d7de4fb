"""The document: one HTML file with its data, style and scripts."""

import html
import json
import pathlib
import string
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..compilation.record import Compilation
from ..ir import unroll
from ..runtime.report import report
from ..wavefront import simulate
from .facts import MOST_KERNELS, MOST_STOCK_CALLS, contender_rows, header, kernel_rows, stock_rows, took_turns
from .lanes import MOST_BOXES, Names, lanes_of, shortened

if TYPE_CHECKING:
    from ..runtime.profiler import Profile

_FOLDER = pathlib.Path(__file__).parent
_TURNS = (
    "In the measured run the vEUs took turns: no two of them were busy at the same time, as where other processes hold "
    "the other cores. Measure on a quiet machine."
)
_SCRIPTS = ("colours.js", "model.js", "lanes.js", "tables.js", "main.js")


def report_html(
    record: Compilation,
    model: str,
    *,
    profile: "Profile | None" = None,
    comparison: Mapping[str, Any] | None = None,
    note: str = "",
) -> str:
    """Write what a model became as one page, which needs no other file and no network.

    Parameters
    ----------
    record : Compilation
    model : str
        What the page calls the model.
    profile : Profile, optional
        Of runs of the same plans; without it there are planned lanes only.
    comparison : mapping, optional
        What `benchmark.bench.bench` returned.
    note : str
        What a reader should know first, such as why nothing was measured.

    Returns
    -------
    str
        An HTML document. Its size is bounded: of large plans neighbouring boxes are joined, of long tables the end
        is left out, and the page says so.
    """
    data = page_data(record, profile=profile) | {
        "model": shortened(model),
        "note": " ".join(filter(None, (note, _TURNS if profile and took_turns(profile.timelines) else ""))),
        "contenders": None if comparison is None else contender_rows(comparison),
    }
    page = string.Template(_read("page.html"))
    return page.substitute(
        title=html.escape(f"{shortened(model)} · tvm_rammer"),
        style=_read("page.css"),
        script="\n".join(map(_read, _SCRIPTS)),
        data=embedded(data),
    )


def page_data(record: Compilation, *, profile: "Profile | None" = None, most_boxes: int = MOST_BOXES) -> dict[str, Any]:
    """The data of a page, ready for JSON.

    Parameters
    ----------
    record, profile
        As in `report_html`.
    most_boxes : int
        As in `lanes_of`.
    """
    facts, steps = report(record), [program.steps for program in record.programs]
    record = replace(record, programs=[unroll(program) for program in record.programs])
    cost = record.cost
    planned = [simulate(program, cost) for program in record.programs]
    measured = None if profile is None else profile.timelines
    kernels = kernel_rows(record, planned, None if profile is None else profile.rtask_us)
    names = Names({row["name"]: number for number, row in enumerate(kernels)})
    executions = [planned] if measured is None else [planned, measured]
    lanes = lanes_of(record.programs, executions, cost, names, most_boxes)
    for program, count in zip(lanes["programs"], steps, strict=True):
        program["steps"] = count
    stock = stock_rows(record)
    return {
        "facts": header(record, planned, measured, facts),
        "executions": ["planned"] if measured is None else ["planned", "measured"],
        "lanes": lanes,
        "operators": [[name, min(kernel, MOST_KERNELS), rtasks] for name, kernel, rtasks in names.rows],
        "kernels": [{key: row[key] for key in row if key != "name"} for row in kernels[:MOST_KERNELS]],
        "kernels_in_all": len(kernels),
        "stock": stock[:MOST_STOCK_CALLS],
        "stock_in_all": len(stock),
    }


def embedded(data: Any) -> str:
    """Write data as JSON that can stand in an HTML script element: it neither ends nor opens one."""
    text = json.dumps(_rounded(data), separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _rounded(value: Any) -> Any:
    """Six significant digits: more than that are noise."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [part if isinstance(part, int) else _rounded(part) for part in value]
    return value


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8").strip()
