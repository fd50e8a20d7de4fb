"""Random graphs whose kernels say what each rTask reads and writes: tilings in one or two dimensions, with halos."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_rammer.ir import Buffer, Footprint, Move, RGraph, RKernel, ROperator

SIZES = ((1, 12), (6, 1), (4, 6), (8, 8), (12, 10))


def tiled_graph(rng: random.Random, operators: int, *, names: str = "o") -> tuple[RGraph, dict[str, list[RKernel]]]:
    """A random graph of two-dimensional int8 images, and one to three kernels for each operator.

    Parameters
    ----------
    operators : int
        At least 1. Each reads up to three earlier results, often the latest ones, or the input.
    """
    buffers = [Buffer("x", rng.choice(SIZES), "int8", "input")]
    made: list[ROperator] = []
    for o in range(operators):
        recent = range(max(0, o - 4), o + 1)
        inputs = tuple(sorted({rng.choice(recent) for _ in range(rng.choice((1, 1, 2, 2, 3)))}))
        # Mostly as large as an input, so that halos say something.
        shape = buffers[rng.choice(inputs)].shape if rng.random() < 0.8 else rng.choice(SIZES)
        buffers.append(Buffer(f"{names}{o}.out", shape, "int8", "intermediate"))
        made.append(ROperator(f"{names}{o}", f"f{names}{o}", inputs, (o + 1,)))
    read = {b for op in made for b in op.inputs}
    kinds = {b: "intermediate" if b in read else "output" for b in range(1, len(buffers))}
    kinded = [buffers[0], *(Buffer(b.name, b.shape, b.dtype, kinds[i]) for i, b in enumerate(buffers[1:], 1))]
    graph = RGraph("g", tuple(kinded), tuple(made))
    return graph, {op.function: _kernels(rng, graph, op) for op in made}


def tiled_graph_with_copies(
    rng: random.Random, operators: int
) -> tuple[RGraph, dict[str, list[RKernel]], dict[str, tuple[Move, ...]]]:
    """A random graph of images of 8 columns, many of which are others one above the other, or some rows of another.

    Returns
    -------
    graph : RGraph
    kernels : dict of str to list of RKernel
        Of the copying operators, too.
    copies : dict of str to tuple of Move
    """
    buffers = [Buffer("x", (16, 8), "int8", "input")]
    made: list[ROperator] = []
    copies: dict[str, tuple[Move, ...]] = {}
    for o in range(operators):
        a, b = rng.choice(range(max(0, o - 3), o + 1)), rng.randrange(o + 1)
        rows, more = buffers[a].shape[0], buffers[b].shape[0]
        inputs, name = tuple(sorted({a, b})), f"o{o}"
        shape = (rng.choice((8, 16, rows)), 8)
        kind = rng.random()
        if kind < 0.35 and rows + more <= 64:
            inputs, shape = (a, b), (rows + more, 8)
            copies[f"f{name}"] = (Move(0, 0, 0, 0, 8 * rows), Move(1, 0, 0, 8 * rows, 8 * more))
        elif kind < 0.55 and rows > 8:
            first = 8 * rng.randrange(rows // 8)
            inputs, shape = (a,), (rng.choice(range(8, rows - first + 1, 8)), 8)
            copies[f"f{name}"] = (Move(0, 8 * first, 0, 0, 8 * shape[0]),)
        buffers.append(Buffer(f"{name}.out", shape, "int8", "intermediate"))
        made.append(ROperator(name, f"f{name}", inputs, (o + 1,)))
    read = {b for op in made for b in op.inputs}
    kinded = [
        b if i in read or b.kind == "input" else Buffer(b.name, b.shape, b.dtype, "output")
        for i, b in enumerate(buffers)
    ]
    graph = RGraph("g", tuple(kinded), tuple(made))
    return graph, {op.function: _kernels(rng, graph, op) for op in made}, copies


def _kernels(rng: random.Random, graph: RGraph, op: ROperator) -> list[RKernel]:
    found: dict[int, RKernel] = {}
    for _ in range(rng.choice((1, 2, 3))):
        kernel = _kernel(rng, [graph.buffers[b].shape for b in (*op.inputs, *op.outputs)], op.function)
        found.setdefault(kernel.num_rtasks, kernel)
    return list(found.values())


def _kernel(rng: random.Random, shapes: Sequence[tuple[int, ...]], function: str) -> RKernel:
    out = shapes[-1]
    # Tiles of rows and columns, or of cells one after another.
    grid = out if rng.random() < 0.8 else (math.prod(out),)
    tile = tuple(rng.randint(max(1, extent // 4), extent) for extent in grid)
    radices = tuple(-(-extent // t) for extent, t in zip(grid, tile, strict=True))
    halo, count = rng.choice((0, 0, 1, 2)), math.prod(radices)
    view = () if grid == out else grid
    footprints = tuple(
        _tiles(radices, tile, halo if i + 1 < len(shapes) else 0, view) if shape == out and rng.random() < 0.9 else None
        for i, shape in enumerate(shapes)
    )
    us = rng.choice((0.5, 1.0, 3.0))
    return RKernel(f"k_{function}_{count}", function, count, us, footprints=footprints if rng.random() < 0.9 else ())


def _tiles(radices: tuple[int, ...], tile: tuple[int, ...], halo: int, view: tuple[int, ...]) -> Footprint:
    steps = tuple(tuple(t if i == d else 0 for i in range(len(tile))) for d, t in enumerate(tile))
    return Footprint(radices, (-halo,) * len(tile), steps, tuple(t + 2 * halo for t in tile), view)


def touched(kernel: RKernel, parameter: int, shape: tuple[int, ...], index: int, *, written: bool) -> np.ndarray:
    """What an rTask touches of a buffer: the numbers of its cells, row after row.

    A tile of unknown footprint is all of an input. Of an output it is what the rTasks of these tests write then: equal
    parts, one after another.
    """
    cells = np.arange(math.prod(shape))
    footprint = kernel.footprints[parameter] if kernel.footprints else None
    if footprint is None:
        first, last = (n * cells.size // kernel.num_rtasks for n in (index, index + 1))
        return cells[first:last] if written else cells
    view = footprint.view or shape
    box = tuple(slice(max(0, a), max(0, min(b, n))) for (a, b), n in zip(footprint.box(index), view, strict=True))
    return cells.reshape(view)[box].ravel()


def rtask(graph: RGraph, op: ROperator, kernel: RKernel) -> Callable[..., None]:
    """An rTask in NumPy, for the reference interpreter: each value depends on all that the rTask may read."""
    shapes = [graph.buffers[b].shape for b in (*op.inputs, *op.outputs)]
    salt = sum(map(ord, op.name))

    def run(*arguments: Any) -> None:
        *arrays, index = arguments
        total = salt
        for p, array in enumerate(arrays[:-1]):
            seen = array.ravel()[touched(kernel, p, shapes[p], index, written=False)].astype(np.int64)
            total = total * 31 + int((seen * (1 + 2 * np.arange(seen.size))).sum())
        cells = touched(kernel, len(arrays) - 1, shapes[-1], index, written=True)
        arrays[-1].reshape(-1)[cells] = (total + 7 * cells).astype(np.uint8).view(np.int8)

    return run
