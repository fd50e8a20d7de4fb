"""CUDA tilings of products on tensor cores, by `mma.sync` with sums in single precision: of float16 or bfloat16, and of
single precision where ten bits of mantissa will do (TF32), which a device has to say.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...tiling import Function
from ..cost import WARP, Cost, port_bytes
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import Code, CudaRule
from .code import product_code
from .gemm import FUSED_ADDRESS, Simt, find_simt, load_bytes, rtasks_of
from .mma_code import MatrixWriter
from .problem import padded
from .steps import Covering
from .tile import GemmTile
from .warp_matrix import COLUMNS, KINDS, ROW_BYTES, ROWS, WORD

PADDING = 8
"""Elements between rows of a tile in shared memory that are not along K: then the eight rows of halves that `ldmatrix`
turns are in different banks, and so are four rows of eight floats, which a warp reads word by word.
"""

SIDES, DEPTHS, WARP_SIDES = (16, 32, 64, 128), (16, 32, 64, 128, 256), (16, 32, 64)
"""Extents of a tile in I and J, in K, and of what a warp computes of it."""

SLICES = (1, 2, 4, 8)
"""Teams of warps, each of which has its own part of K."""

SUMS_PADDING = {True: 4, False: 8}
"""Elements between rows of a team's sums, along I and along J: then those of a warp are in different banks."""

MAX_SUMS = 64
"""Results of a thread, at most."""

MAX_STAGED = 128
"""Bytes that a thread loads in advance, at most."""

MAX_PADDED_WORK = 4.0
"""Padded work at most, relative to useful work: tensor cores are many times as fast as what loads the operands."""

FIRST_ARCH = 80
"""Compute capability: sm_80 is the first that has m16n8k16, and TF32."""

STEP_CYCLES, LOAD_CYCLES, ROUNDING_CYCLES = 270, 228, 2.0
"""Of a step, whatever it has; of one beside the cycles in which its bytes come from the last-level cache; and to round
a number to TF32.

These and the next were fitted to 125 kernels of products in float16 and TF32 on an H200: the mean error is 9 %. What
rounding costs, and the ratios of the next, are from an issue model of their SASS.
"""

ELEMENT_CYCLES, VECTOR_CYCLES, FRAGMENT_CYCLES, MULTIPLY_CYCLES = (15.6, 0.9), (21.3, 4.6), (5.6, 4.3), (0.9, 0.44)
"""For each element of A, and vector of B, that a thread loads and stages, fragment that a warp loads, and matrix
instruction: of a warp alone, and for each warp.
"""

RESULT_CYCLES = 13.5
"""Of a warp, to store a result of each thread."""

HALF_GAIN, TF32_GAIN = 8.0, 4.0
"""How much faster tensor cores multiply matrices than CUDA cores multiply those of single precision."""


@dataclass(frozen=True, slots=True)
class MatrixTile(GemmTile):
    """A tile of which each warp of a team computes `mi` x `mj` sums. Its elements have 16 bits."""

    itemsize: ClassVar[int] = 2

    @property
    def padding(self) -> int:
        """Elements between rows of a tile in shared memory that are not along K."""
        return PADDING

    @property
    def fragments(self) -> bool:
        """Matrix instructions read the tiles."""
        return True

    @property
    def team(self) -> int:
        """Threads that together compute all sums over a part of K."""
        return (self.i // self.mi) * (self.j // self.mj) * WARP

    @property
    def sums(self) -> int:
        """Registers of a thread for sums."""
        return self.mi * self.mj // WARP

    @property
    def step_elements(self) -> int:
        """Both operands' tiles of a step, with rows along K or across."""
        row = self.k + ROW_BYTES // self.itemsize
        return sum(max(self.k * (e + PADDING), e * row) for e in (self.i, self.j))

    @property
    def buffers(self) -> int:
        """Steps whose tiles are in shared memory."""
        return 2 if 2 * self.itemsize * self.step_elements <= MAX_SHARED else 1

    @property
    def staged(self) -> bool:
        """Whether results go through shared memory: where those of several teams are added up there."""
        return self.slices > 1

    def sums_row(self, fast_i: bool) -> int:
        """Elements from one row of a team's sums to the next, along I or J, when they are added up."""
        return (self.i if fast_i else self.j) + SUMS_PADDING[fast_i]

    @property
    def team_sums(self) -> int:
        """Elements from one team's sums to the next one's, when they are added up."""
        return max(self.j * self.sums_row(True), self.i * self.sums_row(False))

    @property
    def shared_elements(self) -> int:
        """The tiles."""
        return self.buffers * self.step_elements

    @property
    def shared_bytes(self) -> int:
        """Of the tiles; after the last step the teams' sums lie there, in single precision."""
        return max(self.itemsize * self.shared_elements, 4 * self.slices * self.team_sums if self.staged else 0)


@dataclass(frozen=True, slots=True)
class SingleTile(MatrixTile):
    """The same of numbers of single precision."""

    itemsize: ClassVar[int] = 4


TileT = TypeVar("TileT", bound=MatrixTile)


def find_matrix(function: Function) -> Simt | None:
    """Return a product of 16-bit numbers on a device that has the instruction; None for others."""
    return _find(function, 2)


def find_tf32(function: Function) -> Simt | None:
    """Return a product of single precision on a device that may take it for one of TF32; None for others."""
    return _find(function, 4) if function.device.tf32 else None


def _find(function: Function, itemsize: int) -> Simt | None:
    problem = find_simt(function) if function.device.compute_capability >= FIRST_ARCH else None
    if problem is None:
        return None
    a, b, result = problem.gemm.dtypes
    kind = KINDS.get(a)
    return problem if kind and kind.itemsize == itemsize and a == b and result in (a, "float32") else None


def matrix_tiles(problem: Simt, device: DeviceSpec) -> Iterator[MatrixTile]:
    """All tiles of full fragments that fit an rTask, without those that pad too much."""
    return _tiles(problem, MatrixTile)


def tf32_tiles(problem: Simt, device: DeviceSpec) -> Iterator[SingleTile]:
    """The same of single precision."""
    return _tiles(problem, SingleTile)


def _tiles(problem: Simt, kind: type[TileT]) -> Iterator[TileT]:
    gemm = problem.gemm
    for i, j in itertools.product(SIDES, SIDES):
        if padded(gemm.i, i) * padded(gemm.j, j) > MAX_PADDED_WORK * gemm.i * gemm.j and (i, j) != (ROWS, ROWS):
            continue
        for k, mi, mj, slices in itertools.product(DEPTHS, WARP_SIDES, WARP_SIDES, SLICES):
            if i % mi or j % mj:
                continue
            tile = kind(i, j, k, mi, mj, slices)
            if _fits(tile) and (k <= 2 * gemm.k or k == DEPTHS[0]):
                yield tile


def _fits(tile: MatrixTile) -> bool:
    terms = tile.slices * 8 * WORD // tile.itemsize
    return (
        tile.threads <= MAX_THREADS
        and tile.k % terms == 0
        and (not tile.staged or (tile.i * tile.j) % tile.threads == 0)
        and tile.sums <= MAX_SUMS
        and (tile.i * tile.k) % tile.threads == 0
        and (tile.j * tile.k) % tile.threads == 0
        and tile.itemsize * (tile.i + tile.j) * tile.k <= MAX_STAGED * tile.threads
        and tile.shared_bytes <= MAX_SHARED
    )


def matrix_cost(problem: Simt, tile: MatrixTile) -> Cost:
    """The work of an rTask of a product."""
    gemm = problem.gemm
    covering = Covering(problem.taps, problem.channels, tile.k)
    num_rtasks = rtasks_of(problem, tile)
    step_bytes = load_bytes(problem, tile, tile.itemsize)
    a, b = tile.i * tile.k / tile.threads, tile.j * tile.k / tile.threads / 4
    element = (FUSED_ADDRESS, ELEMENT_CYCLES[1]) if covering.fused else ELEMENT_CYCLES
    depth = tile.k // KINDS[gemm.dtypes[0]].terms // tile.slices
    multiplies = depth * (tile.mi // ROWS) * (tile.mj // COLUMNS)
    fragments = depth * (tile.mi + tile.mj) // 16
    warps = tile.threads // WARP
    rounding, gain = (ROUNDING_CYCLES * (a + 4 * b), TF32_GAIN) if tile.itemsize == 4 else (0.0, HALF_GAIN)
    parts = ((a, element), (b, VECTOR_CYCLES), (fragments, FRAGMENT_CYCLES), (multiplies, MULTIPLY_CYCLES))
    alone = STEP_CYCLES + rounding + sum(n * one for n, (one, _) in parts)
    busy = warps * sum(n * each for n, (_, each) in parts)
    step = max(alone + busy, LOAD_CYCLES + step_bytes / port_bytes(problem.device, num_rtasks))
    return Cost(
        num_rtasks=num_rtasks,
        threads=tile.threads,
        flops=2.0 * tile.i * tile.j * tile.k * covering.count,
        nbytes=step_bytes * covering.count + ITEM_BYTES[gemm.dtypes[2]] * tile.i * tile.j,
        steps=1,
        outputs=tile.sums,
        gain=gain,
        cycles=covering.count * step + RESULT_CYCLES * tile.sums * warps,
        busy_cycles=covering.count * busy,
    )


def schedule_matrix(func: tirx.PrimFunc, problem: Simt, tile: MatrixTile) -> Code:
    """Make the kernel of a product with one tile size.

    Raises
    ------
    ScheduleError, AssertionError, ValueError
        What surrounds the product cannot be inlined, or the tile does not fit it.
    """
    return Code(*product_code(MatrixWriter, func, tile, problem.weights))


MMA_RULE = CudaRule("mma", find_matrix, matrix_tiles, MatrixTile, matrix_cost, schedule_matrix)
TF32_RULE = CudaRule("tf32", find_tf32, tf32_tiles, SingleTile, matrix_cost, schedule_matrix)
