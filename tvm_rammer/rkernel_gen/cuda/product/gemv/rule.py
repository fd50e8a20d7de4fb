"""CUDA tilings of products with a row or a few, and constant weights: recurrent cells, classifier layers.

Each weight is used once, so that nothing is to be shared: what counts is how many bytes are under way. Weights are
packed at compile time, so that those of an rTask lie side by side in the order in which its threads read them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from .....device import DeviceSpec
from ....tiling import Function
from ...cost import LATENCY_CYCLES, PORT_BYTES_PER_CYCLE, SCHEDULERS, SHARED_BYTES_PER_CYCLE, WARP, Cost
from ...lowered import MAX_THREADS
from ...rule import Code, CudaRule
from ..parts import read_product
from .code import gemv_code
from .tile import GemvTile
from .weights import weights_of

MAX_ROWS = 4
"""Rows at most: with more, a tile in shared memory reads less."""

MIN_TERMS = 32
"""Terms of a sum, at least."""

COLUMNS = (4, 8, 16, 32, 64, 128)
"""Columns of an rTask."""

TEAMS = (2, 4, 8, 16, 32, 64, 128, 256)
"""Into how many parts an rTask divides a sum."""

CYCLES_OF_LOADS, CYCLES_OF_SUMS = 250, 200
"""Of some loads from the last-level cache and their uses; of adding up the sums of all teams."""

LOADS_IN_FLIGHT = 4
"""Vectors of weights of a thread that are under way together: ptxas gives no more registers to such a loop."""

INSTRUCTIONS = 10
"""Of a vector of weights: its load and address, the load of an element of the row, and four multiply-adds."""


@dataclass(frozen=True, slots=True)
class Gemv:
    """A product of a few rows with constant weights.

    Parameters
    ----------
    rows, columns, terms : int
    weights : int
        The parameter that is the weights.
    """

    rows: int
    columns: int
    terms: int
    weights: int


def find_gemv(function: Function) -> Gemv | None:
    """Describe a product with few rows; None where it has more, or its weights cannot be packed."""
    try:
        product = read_product(function.func)
    except (ScheduleError, AssertionError, ValueError):
        return None
    weights = weights_of(function.func, product, function.constants)
    if weights is None or product.i.extent > MAX_ROWS or product.channels.extent < MIN_TERMS:
        return None
    return Gemv(product.i.extent, product.j.extent, product.channels.extent, weights)


def gemv_tiles(problem: Gemv, device: DeviceSpec) -> Iterator[GemvTile]:
    """All tiles of whole warps whose teams all have something to add."""
    for columns, teams in itertools.product(COLUMNS, TEAMS):
        tile = GemvTile(columns, teams)
        fits = tile.threads % device.warp == 0 and tile.threads <= MAX_THREADS
        if fits and teams <= problem.terms and (columns < 2 * problem.columns or columns == COLUMNS[0]):
            yield tile


def gemv_cost(problem: Gemv, tile: GemvTile) -> Cost:
    """The work of an rTask: its weights are read once, in batches of as many loads as registers hold."""
    loads = -(-problem.terms // tile.teams)
    weights = 4 * tile.columns * problem.terms
    return Cost(
        num_rtasks=-(-problem.columns // tile.columns),
        threads=tile.threads,
        flops=2.0 * problem.rows * tile.columns * problem.terms,
        nbytes=weights + 4 * problem.rows * (problem.terms + tile.columns),
        outputs=4 * problem.rows,
        cycles=_cycles(problem, tile, CYCLES_OF_LOADS * -(-loads // LOADS_IN_FLIGHT), weights / PORT_BYTES_PER_CYCLE),
    )


def gemv_kept_cost(problem: Gemv, tile: GemvTile) -> Cost:
    """The same where the weights are in shared memory: only the rows come from the cache, many elements together."""
    cost, loads = gemv_cost(problem, tile), -(-problem.terms // tile.teams)
    weights, batch = 4 * tile.columns * problem.terms, tile.batch(problem.terms, problem.rows)
    return replace(
        cost,
        nbytes=cost.nbytes - weights,
        shared_bytes=weights,
        cycles=_cycles(problem, tile, LATENCY_CYCLES * -(-loads // batch), weights / SHARED_BYTES_PER_CYCLE),
    )


def _cycles(problem: Gemv, tile: GemvTile, trips: float, weights: float) -> float:
    """With so many cycles of trips to the last-level cache, and so many in which the weights come to the registers."""
    warps = tile.threads // WARP
    loads = -(-problem.terms // tile.teams)
    issue = loads * (INSTRUCTIONS + 5 * (problem.rows - 1)) * max(1.0, warps / SCHEDULERS)
    return trips + max(issue, weights) + CYCLES_OF_SUMS


def schedule_gemv(func: tirx.PrimFunc, problem: Gemv, tile: GemvTile) -> Code:
    """Make the kernel of a product with one tile size.

    Raises
    ------
    ScheduleError, AssertionError, ValueError
        What surrounds the product cannot be inlined.
    """
    return Code(*gemv_code(func, problem.weights, tile), sliced=problem.weights)


GEMV_RULE = CudaRule("gemv", find_gemv, gemv_tiles, GemvTile, gemv_cost, schedule_gemv, gemv_kept_cost)
