"""CUDA tilings of products of float16 or bfloat16 on tensor cores: `mma.sync` m16n8k16, sums in single precision."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from tvm import tirx

from ....device import DeviceSpec
from ....ir import ITEM_BYTES
from ...tiling import Function
from ..cost import Cost, loop_cycles
from ..lowered import MAX_SHARED, MAX_THREADS
from ..rule import Code, CudaRule
from .code import product_code
from .gemm import FUSED_ADDRESS, PLAIN_ADDRESS, WINDOW_ADDRESS, Simt, find_simt
from .mma_code import WARP, MatrixWriter
from .problem import padded
from .steps import Covering
from .tile import GemmTile
from .warp_matrix import COLUMNS, KINDS, ROWS, TERMS

HALVES = 8
"""Halves between rows of a tile in shared memory: 16 bytes, so that eight rows are in different banks."""

SIDES, DEPTHS, WARP_SIDES = (16, 32, 64, 128), (16, 32, 64, 128), (16, 32, 64)
"""Extents of a tile in I and J, in K, and of what a warp computes of it."""

MAX_SUMS = 64
"""Results of a thread, at most."""

MAX_STAGED = 64
"""Elements that a thread loads in advance, at most: two are a register where they come in vectors."""

MAX_PADDED_WORK = 4.0
"""Padded work at most, relative to useful work: tensor cores are many times as fast as what loads the operands."""

MULTIPLY_CYCLES = 8
"""Cycles of a scheduler's tensor core for one instruction."""

FIRST_ARCH = 80
"""sm_80 is the first that has m16n8k16."""


@dataclass(frozen=True, slots=True)
class MatrixTile(GemmTile):
    """A tile of which each warp computes `mi` x `mj` sums; there is one team."""

    @property
    def padding(self) -> int:
        """Elements between rows of a tile in shared memory."""
        return HALVES

    @property
    def fragments(self) -> bool:
        """Matrix instructions read the tiles."""
        return True

    @property
    def team(self) -> int:
        """Threads that together compute all sums."""
        return (self.i // self.mi) * (self.j // self.mj) * WARP

    @property
    def sums(self) -> int:
        """Registers of a thread for sums."""
        return self.mi * self.mj // WARP

    @property
    def step_elements(self) -> int:
        """Both operands' tiles of a step, with rows along K or across."""
        return sum(max(self.k * (e + HALVES), e * (self.k + HALVES)) for e in (self.i, self.j))

    @property
    def buffers(self) -> int:
        """Steps whose tiles are in shared memory."""
        return 2 if 4 * self.step_elements <= MAX_SHARED else 1

    @property
    def shared_elements(self) -> int:
        """The tiles."""
        return self.buffers * self.step_elements

    @property
    def shared_bytes(self) -> int:
        """In half precision."""
        return 2 * self.shared_elements


def find_matrix(function: Function) -> Simt | None:
    """Return a product of 16-bit numbers on a device that has the instruction; None for others."""
    arch = "".join(c for c in function.device.arch if c.isdigit())
    if not arch or int(arch) < FIRST_ARCH:
        return None
    problem = find_simt(function)
    if problem is None:
        return None
    a, b, result = problem.gemm.dtypes
    return problem if a in KINDS and a == b and result in (a, "float32") else None


def matrix_tiles(problem: Simt, device: DeviceSpec) -> Iterator[MatrixTile]:
    """All tiles of full fragments that fit an rTask, without those that pad too much."""
    gemm = problem.gemm
    for i, j in itertools.product(SIDES, SIDES):
        if padded(gemm.i, i) * padded(gemm.j, j) > MAX_PADDED_WORK * gemm.i * gemm.j and (i, j) != (ROWS, ROWS):
            continue
        for k, mi, mj in itertools.product(DEPTHS, WARP_SIDES, WARP_SIDES):
            if i % mi or j % mj:
                continue
            tile = MatrixTile(i, j, k, mi, mj, 1)
            if _fits(tile) and (k <= 2 * gemm.k or k == DEPTHS[0]):
                yield tile


def _fits(tile: MatrixTile) -> bool:
    return (
        tile.threads <= MAX_THREADS
        and tile.sums <= MAX_SUMS
        and (tile.i * tile.k) % tile.threads == 0
        and (tile.j * tile.k) % tile.threads == 0
        and (tile.i + tile.j) * tile.k <= MAX_STAGED * tile.threads
        and tile.shared_bytes <= MAX_SHARED
    )


def matrix_cost(problem: Simt, tile: MatrixTile) -> Cost:
    """The work of an rTask of a product."""
    gemm = problem.gemm
    covering = Covering(problem.taps, problem.channels, tile.k)
    itemsize = ITEM_BYTES[gemm.dtypes[0]]
    step_bytes = itemsize * (tile.i + tile.j) * tile.k
    a, b = tile.i * tile.k / tile.threads, tile.j * tile.k / tile.threads / 4
    address = FUSED_ADDRESS if covering.fused else PLAIN_ADDRESS if problem.taps == 1 else WINDOW_ADDRESS
    depth = tile.k // TERMS
    multiplies = depth * (tile.mi // ROWS) * (tile.mj // COLUMNS)
    loads = depth * (tile.mi + tile.mj) // 16
    instructions = max(multiplies * MULTIPLY_CYCLES, multiplies + 4 * loads + address * a + 3 * b)
    warps = tile.threads // WARP
    loop, busy = loop_cycles(covering.count, warps, instructions, 4 * loads + 2 * (a + b), step_bytes)
    return Cost(
        num_rtasks=gemm.batch * -(-gemm.i // tile.i) * -(-gemm.j // tile.j),
        threads=tile.threads,
        flops=2.0 * tile.i * tile.j * tile.k * covering.count,
        nbytes=step_bytes * covering.count + ITEM_BYTES[gemm.dtypes[2]] * tile.i * tile.j,
        steps=1,
        outputs=tile.sums,
        tensor_cores=True,
        cycles=loop,
        busy_cycles=busy,
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
