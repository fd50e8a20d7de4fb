"""A picture of a plan or a run as SVG: a row for each vEU, a box for each run and wait."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from ...ir import RProgram, unroll
from ..cost import CostModel
from ..predict.critical_path import Causes
from ..predict.simulate import simulate
from ..predict.timeline import Timeline
from .boxes import Box, boxes_of, operator_colour

_WIDTH, _LEFT, _TOP, _RIGHT = 1200, 64, 66, 24
_MOST_BOXES = 20_000
_MOST_ARROWS = 300
_LEGEND_COLUMNS, _LEGEND_MOST = 5, 40
_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#334}.title{font-size:15px;font-weight:600}.small{font-size:9px}"
    ".row{fill:#f3f4f7}.launch{fill:#d9dce3}.run{stroke:#fff;stroke-width:.5}.wait{fill:url(#hatch)}"
    ".signal{stroke:#c0392b;stroke-width:.7;stroke-opacity:.6}.tick{stroke:#334;stroke-opacity:.15}"
    ".cut{stroke:#334;stroke-dasharray:4 3}.label{pointer-events:none;fill:#fff;font-weight:600}"
)
_HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect width="5" height="5" fill="#fbe3e0"/><path d="M0,5L5,0" stroke="#d9534f" stroke-width="1"/></pattern></defs>'
)


def schedule_svg(
    programs: Sequence[RProgram], cost: CostModel | None = None, timelines: Sequence[Timeline] | None = None
) -> str:
    """Draw programs one after the other on one axis of time.

    Parameters
    ----------
    programs : sequence of RProgram
        In launch order.
    cost : CostModel, optional
        The cost model of the simulation behind the picture; without it synchronisation costs nothing.
    timelines : sequence of Timeline, optional
        A measured run of each program; without it they are simulated.

    Returns
    -------
    str
        An SVG document of at most some 4 MB: of large plans, neighbouring boxes are drawn as one.
    """
    cost = cost or CostModel()
    programs = [unroll(program) for program in programs]
    timelines = timelines or [simulate(program, cost) for program in programs]
    return "\n".join(_Picture(programs, cost, timelines).lines()) + "\n"


class _Picture:
    def __init__(self, programs: Sequence[RProgram], cost: CostModel, timelines: Sequence[Timeline]) -> None:
        self.programs, self.cost, self.timelines = programs, cost, timelines
        self.begins: list[float] = [0.0]
        for timeline in self.timelines:
            self.begins.append(self.begins[-1] + cost.launch_us + timeline.makespan_us)
        self.total_us = self.begins[-1]
        self.scale = _WIDTH / (self.total_us or 1.0)
        self.lanes = max((len(program.lanes) for program in programs), default=0)
        self.pitch = min(26.0, max(4.0, 900 / max(1, self.lanes)))
        self.bottom = _TOP + self.lanes * self.pitch
        self.names = [op.name for program in programs for op in program.graph.operators]

    def lines(self) -> Iterator[str]:
        """The document, element by element; what comes later lies on top."""
        rows = -(-len(self.names) // _LEGEND_COLUMNS) if len(self.names) <= _LEGEND_MOST else 0
        width, height = _LEFT + _WIDTH + _RIGHT, self.bottom + 44 + 18 * rows
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
            f'viewBox="0 0 {width} {height:.0f}"><style>{_STYLE}</style>{_HATCH}'
        )
        yield f'<rect width="{width}" height="{height:.0f}" fill="#fff"/>'
        yield f'<text class="title" x="{_LEFT}" y="22">{escape(self._headline())}</text>'
        for v in range(self.lanes):
            y = _TOP + v * self.pitch
            yield f'<rect class="row" x="{_LEFT}" y="{y + 0.5:.1f}" width="{_WIDTH}" height="{self.pitch - 1:.1f}"/>'
        yield from self._axis()
        yield from self._launches()
        narrowest = 0.0
        if sum(len(timeline.spans) for timeline in self.timelines) > _MOST_BOXES:
            narrowest = self.lanes * _WIDTH / _MOST_BOXES / self.scale
        rows_of_boxes = boxes_of(self.programs, self.timelines, self.lanes, narrowest)
        for v, row in enumerate(rows_of_boxes):
            yield from self._lane(v, row)
        yield from self._signals()
        if rows:
            yield from self._legend()
        yield "</svg>"

    def _headline(self) -> str:
        busy = sum(t.utilisation * t.makespan_us * len(p.lanes) for p, t in self._each())
        area = sum(t.makespan_us * len(p.lanes) for p, t in self._each())
        waits = sum(program.waits() for program in self.programs)
        return (
            f"{len(self.names)} operators on {self.lanes} vEUs: {self.total_us:.1f} µs in {len(self.programs)} "
            f"program{'s' if len(self.programs) != 1 else ''}, {waits} waits, {100 * busy / (area or 1):.0f} % busy"
        )

    def _each(self) -> Iterator[tuple[RProgram, Timeline]]:
        return zip(self.programs, self.timelines, strict=True)

    def _x(self, program: int, time_us: float) -> float:
        return _LEFT + (self.begins[program] + self.cost.launch_us + time_us) * self.scale

    def _y(self, lane: int) -> float:
        return _TOP + lane * self.pitch + self.pitch / 2

    def _axis(self) -> Iterator[str]:
        step = _nice(self.total_us / 10)
        for n in range(int(self.total_us / step) + 1 if self.total_us else 1):
            x = _LEFT + n * step * self.scale
            yield f'<line class="tick" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{self.bottom + 4:.1f}"/>'
            yield f'<text x="{x:.1f}" y="{self.bottom + 17:.1f}" text-anchor="middle">{n * step:g}</text>'
        yield f'<text x="{_LEFT + _WIDTH}" y="{self.bottom + 31:.1f}" text-anchor="end">time in µs</text>'

    def _launches(self) -> Iterator[str]:
        for k, (program, timeline) in enumerate(self._each()):
            x, end = self._x(k, -self.cost.launch_us), self._x(k, timeline.makespan_us)
            text = f"{program.name}: launch {self.cost.launch_us:g} µs, then {timeline.makespan_us:.2f} µs"
            yield f'<g class="program"><title>{escape(text)}</title>'
            yield (
                f'<rect class="launch" x="{x:.2f}" y="{_TOP}" width="{self.cost.launch_us * self.scale:.2f}" '
                f'height="{self.bottom - _TOP:.1f}"/>'
            )
            yield f'<line class="cut" x1="{x:.2f}" y1="{_TOP - 18}" x2="{x:.2f}" y2="{self.bottom:.1f}"/>'
            for shown in (text, program.name):
                if 6.4 * len(shown) < end - x:
                    yield f'<text x="{x + 4:.2f}" y="{_TOP - 7}">{escape(shown)}</text>'
                    break
            yield "</g>"

    def _lane(self, v: int, row: Sequence[Box]) -> Iterator[str]:
        y, height = _TOP + v * self.pitch + 1, self.pitch - 2
        yield f'<g class="lane" id="veu-{v}">'
        if self.pitch >= 12 or v % 8 == 0:
            small = "" if self.pitch >= 12 else ' class="small"'
            yield f'<text{small} x="{_LEFT - 6}" y="{self._y(v) + 4:.1f}" text-anchor="end">vEU {v}</text>'
        for box in row:
            x = self._x(box.program, box.start_us)
            width = max(0.3, (box.end_us - box.start_us) * self.scale)
            fill = "" if box.operator is None else f' fill="{operator_colour(box.operator)}"'
            yield (
                f'<rect class="{"wait" if box.operator is None else "run"}" x="{x:.2f}" y="{y:.1f}" '
                f'width="{width:.2f}" height="{height:.1f}"{fill}><title>{escape(box.text)}</title></rect>'
            )
            if self.pitch >= 14 and box.label and 7 * len(box.label) < width:
                yield (
                    f'<text class="label" x="{x + width / 2:.2f}" y="{self._y(v) + 4:.1f}" '
                    f'text-anchor="middle">{escape(box.label)}</text>'
                )
        yield "</g>"

    def _signals(self) -> Iterator[str]:
        arrows = [
            (k, span, cause)
            for k, (program, timeline) in enumerate(self._each())
            for span, cause in Causes(program, self.cost, timeline).between_lanes()
        ]
        if len(arrows) > _MOST_ARROWS:
            return
        for k, span, cause in arrows:
            yield (
                f'<line class="signal" x1="{self._x(k, cause.time_us):.2f}" y1="{self._y(cause.lane):.1f}" '
                f'x2="{self._x(k, span.end_us):.2f}" y2="{self._y(span.lane):.1f}"/>'
            )

    def _legend(self) -> Iterator[str]:
        for n, name in enumerate(self.names):
            x = _LEFT + n % _LEGEND_COLUMNS * (_WIDTH // _LEGEND_COLUMNS)
            y = self.bottom + 40 + 18 * (n // _LEGEND_COLUMNS)
            yield f'<rect x="{x}" y="{y:.1f}" width="12" height="12" rx="2" fill="{operator_colour(n)}"/>'
            yield f'<text x="{x + 18}" y="{y + 10:.1f}">{escape(_short(name))}</text>'


def _nice(step: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is not below `step`."""
    if step <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= step)


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:20]}…{name[-13:]}"
