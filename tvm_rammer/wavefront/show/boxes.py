"""The boxes in a picture of a plan, and their colours."""

import colorsys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...ir import RProgram, Run
from ..predict.timeline import Span, Timeline

_GOLDEN = 0.381966
"""Steps of the golden angle keep hues of neighbours far apart, however many there are."""


@dataclass(frozen=True, slots=True)
class Box:
    """One box in the row of a vEU.

    Parameters
    ----------
    program : int
        Which of the programs drawn.
    operator : int or None
        Number of the rOperator over all programs; None for a wait.
    start_us, end_us : float
        From the start of the program, its launch not counted.
    label, text : str
        The text in it, and its tooltip.
    """

    program: int
    operator: int | None
    start_us: float
    end_us: float
    label: str
    text: str


def operator_colour(operator: int) -> str:
    """The colour of an operator, the same in every picture."""
    lightness, saturation = ((0.48, 0.55), (0.60, 0.60), (0.40, 0.45))[operator % 3]
    rgb = colorsys.hls_to_rgb((0.58 + operator * _GOLDEN) % 1.0, lightness, saturation)
    return "#" + "".join(f"{round(255 * c):02x}" for c in rgb)


def boxes_of(
    programs: Sequence[RProgram], timelines: Sequence[Timeline], lanes: int, narrowest_us: float
) -> list[list[Box]]:
    """Make the boxes of each lane.

    Parameters
    ----------
    programs : sequence of RProgram
    timelines : sequence of Timeline
        Of the same programs.
    lanes : int
        Number of rows.
    narrowest_us : float
        Neighbours are joined until their box is at least so wide; 0 keeps each span its own box.

    Returns
    -------
    list of list of Box
        Row after row, in order of time.
    """
    rows: list[list[Box]] = [[] for _ in range(lanes)]
    first = 0
    for k, (program, timeline) in enumerate(zip(programs, timelines, strict=True)):
        for v, spans in enumerate(timeline.by_lane()):
            rows[v] += [_box(program, k, first, group) for group in _groups(spans, narrowest_us)]
        first += len(program.graph.operators)
    return rows


def _groups(spans: Sequence[Span], narrowest_us: float) -> Iterator[list[Span]]:
    group: list[Span] = []
    for span in spans:
        group.append(span)
        if span.end_us - group[0].start_us >= narrowest_us:
            yield group
            group = []
    if group:
        yield group


def _box(program: RProgram, k: int, first: int, group: Sequence[Span]) -> Box:
    if len(group) == 1:
        return _single(program, k, first, group[0])
    share: dict[int | None, float] = defaultdict(float)
    for span in group:
        share[first + span.operator if span.kind == "run" else None] += span.end_us - span.start_us
    most = max(share, key=lambda operator: share[operator])
    runs = sum(span.kind == "run" for span in group)
    start, end = group[0].start_us, group[-1].end_us
    text = f"{runs} runs of {len(share) - (None in share)} operators, {len(group) - runs} waits{_times(start, end)}"
    return Box(k, most, start, end, "", text)


def _single(program: RProgram, k: int, first: int, span: Span) -> Box:
    instruction = program.lanes[span.lane][span.instruction]
    name = program.graph.operators[span.operator].name if span.operator >= 0 else "the end"
    times = _times(span.start_us, span.end_us)
    if isinstance(instruction, Run):
        indices = instruction.indices()
        rtasks = f"rTask {indices[0]}" if len(indices) == 1 else f"{len(indices)} rTasks {indices[0]}..{indices[-1]}"
        by = f" step {instruction.step}" if instruction.step > 1 else ""
        text = f"{name}: {rtasks}{by}, kernel {program.kernels[span.operator].name}{times}"
        return Box(k, first + span.operator, span.start_us, span.end_us, name, text)
    return Box(k, None, span.start_us, span.end_us, "", f"wait before {name}{times}")


def _times(start_us: float, end_us: float) -> str:
    return f", {start_us:.2f} to {end_us:.2f} µs"
