"""What the innermost loops of convolutions and products run into beside their multiply-adds.

A register tile of `vectors x pixels` accumulators takes, in a step, as many vectors of weights and broadcast pixels.
Processors differ in what a step costs beyond its multiply-adds, and in how many loads they do beside them. And images
that no cache near a core holds are read a line here and a line there, from one page after the other, which no
processor foresees: how long such a line takes is no matter of bandwidth.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .programs import loop, vectors

if TYPE_CHECKING:
    import tvm

Pixel = Callable[[int], Any]
"""A pixel of a step, by its number."""

TILE_STEPS, TILE_ROUNDS = 64, 300
"""Steps of a register tile, whose weights and pixels stay in the first-level cache, and how often they are repeated."""
WIDE, LONG = (2, 6), (1, 12)
"""Vectors and pixels of two register tiles: one that the multiply-adds limit, and one with a load for each of them.
Both fit in the registers of AVX2."""
HIDDEN = 1.25
"""A step that takes no longer than so many others hides what it waits for."""
LINE, APART = 16, 65
"""Elements of a line, and lines from one that is read to the next: a page and a line."""


def step_cycles(fmas: float, rate: float) -> float:
    """Cycles of a step beyond its multiply-adds, to quarters.

    Parameters
    ----------
    fmas : float
        Multiply-adds that the processor does in registers in the time of a step of the tile `WIDE`.
    rate : float
        Of which it begins so many in a cycle.
    """
    vectors_, pixels = WIDE
    return max(0.0, round(4 * (fmas - vectors_ * pixels) / rate) / 4)


def loads_per_cycle(fmas: float, rate: float, beside: float, most: float) -> float:
    """Loads in a cycle, to quarters, by the time of a step of the tile `LONG`; `most` where they do not limit it.

    Parameters
    ----------
    fmas, rate : float
        As in `step_cycles`.
    beside : float
        `step_cycles`.
    most : float
    """
    vectors_, pixels = LONG
    cycles = fmas / rate
    if cycles <= vectors_ * pixels / rate + beside + 0.25:
        return most
    return min(most, max(1.0, round(4 * (vectors_ + pixels) / cycles) / 4))


def line_ns(far: float, near: float) -> float:
    """Nanoseconds of a step of the tile `LONG` whose pixels are far; 0 where it takes hardly longer than others.

    Parameters
    ----------
    far, near : float
        Of steps whose pixels are lines on other pages, and of such whose pixels are in the first-level cache.
    """
    return far if far > HIDDEN * near else 0.0


def tiles(lanes: int) -> "dict[str, tvm.tirx.PrimFunc]":
    """The programs: `wide` and `long`, whose pixels are near, and `far`."""
    return {
        "wide": register_tile(lanes, *WIDE),
        "long": register_tile(lanes, *LONG),
        "far": far_pixels(lanes, *LONG),
    }


def register_tile(lanes: int, count: int, pixels: int) -> "tvm.tirx.PrimFunc":
    """Steps of a register tile of `count` vectors by `pixels`, whose pixels and weights are near."""
    from tvm import tirx

    image = tirx.decl_buffer((TILE_STEPS, pixels), "float32", "image")

    def steps(step: "Callable[[Any, Pixel], Any]") -> Any:
        return loop(TILE_ROUNDS, lambda r: loop(TILE_STEPS, lambda s: step(s, lambda p: image[s, p])))

    return _tile(lanes, count, pixels, [image], steps)


def far_pixels(lanes: int, count: int, pixels: int) -> "tvm.tirx.PrimFunc":
    """The same where the pixels of each step are a line on another page, and all lines of a buffer are read in turn."""
    from tvm import tirx

    pages = tirx.Var("pages", "int64")
    image = tirx.decl_buffer((pages * TILE_STEPS, APART * LINE), "float32", "image")

    def steps(step: "Callable[[Any, Pixel], Any]") -> Any:
        return loop(APART, lambda line: loop(pages, lambda page: loop(
            TILE_STEPS, lambda s: step(s, lambda p: image[page * TILE_STEPS + s, line * LINE + p]))))  # fmt: skip

    return _tile(lanes, count, pixels, [image, pages], steps)


def _tile(
    lanes: int, count: int, pixels: int, given: "list[Any]", steps: "Callable[[Callable[[Any, Pixel], Any]], Any]"
) -> "tvm.tirx.PrimFunc":
    """The function of a register tile, from its loops over steps."""
    from tvm import tirx

    weights = tirx.decl_buffer((TILE_STEPS, count, lanes), "float32", "weights")
    out = tirx.decl_buffer((pixels, count, lanes), "float32", "out")
    acc = tirx.decl_buffer((pixels, count, lanes), "float32", "acc", scope="local")

    def each(body: "Callable[[int, int, Any], Any]") -> Any:
        return tirx.SeqStmt([vectors(count, lanes, partial(body, p)) for p in range(pixels)])

    def step(s: Any, pixel: Pixel) -> Any:
        return each(lambda p, v, e: tirx.BufferStore(acc, acc[p, v, e] + pixel(p) * weights[s, v, e], [p, v, e]))

    parts = [
        tirx.AllocBuffer(acc),
        each(lambda p, v, e: tirx.BufferStore(acc, out[p, v, e], [p, v, e])),
        steps(step),
        each(lambda p, v, e: tirx.BufferStore(out, acc[p, v, e], [p, v, e])),
    ]
    return tirx.PrimFunc([weights, out, *given], tirx.SeqStmt(parts)).with_attr("tirx.noalias", True)
