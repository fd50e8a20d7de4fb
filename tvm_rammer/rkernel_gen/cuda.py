"""All rKernels of a function on a GPU: one kernel each, whose blocks are the rTasks."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import tvm_ffi
from tvm import tirx
from tvm.s_tir.schedule import ScheduleError

from .. import debug
from ..device import DeviceSpec
from ..ir import RKernel
from ..kernel import ScheduledKernel
from .cuda_contraction import Gemm, Tile, choose_tiles, find_gemm, schedule_gemm
from .cuda_cost import Work, rtask_us
from .cuda_elementwise import count_elements, schedule_elements
from .cuda_measure import Launch, measure
from .cuda_reduction import Sums, choose_lanes, find_sums, schedule_sums
from .cuda_rows import reduces_rows, schedule_rows

MAX_KERNELS = 6
"""Tilings of a function at most."""

SMALL_GEMM = 16
"""Below so many rows or columns a product is also tried as many long sums."""

MAX_TURNS = 64
"""Elements that a thread makes one after another at most, where there are other ways."""

LONG_SUM, FEW_RESULTS = 32, 8192
"""Sums at least so long, of at most so many results, are shared by threads."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A schedule to try, what one of its rTasks costs once its launch is known, and whether only for want of others."""

    schedule: Callable[[], tirx.PrimFunc]
    cost: Callable[[Launch], float]
    spare: bool = False


def cuda_kernels(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tuple[ScheduledKernel, ...]:
    """Make several tilings of a fused function.

    Parameters
    ----------
    name : str
        The function's name; the kernels' names start with it.
    func : tirx.PrimFunc
        Fused, not scheduled, of static shapes.
    device : DeviceSpec
        A GPU.

    Returns
    -------
    tuple of ScheduledKernel
        With different numbers of rTasks, fewest first. Empty where no rule makes one kernel of the function, as for
        several outputs that need sums: then the operator stays out of rPrograms (RAMMER_DEBUG=2 names it).
    """
    func = name_for_c(func)
    work = Work.of(func)
    made: dict[int, ScheduledKernel] = {}
    for candidate in _candidates(func, work, device):
        if len(made) == MAX_KERNELS or (candidate.spare and len(made) > 1):
            break
        try:
            scheduled = candidate.schedule()
        except (ScheduleError, ValueError):  # the rule does not fit the function
            continue
        launch = measure(scheduled, device)
        if launch is None or launch.blocks in made:
            continue
        spec = RKernel(
            name=f"{name}_b{launch.blocks}_t{launch.threads}",
            function=name,
            num_rtasks=launch.blocks,
            rtask_us=candidate.cost(launch),
            threads=launch.threads,
            shared_bytes=launch.shared_bytes,
        )
        made[launch.blocks] = ScheduledKernel(spec, scheduled)
    if not made:
        debug.say(2, f"{name}: no rule makes one CUDA kernel of it, so it stays out of rPrograms")
    return tuple(made[blocks] for blocks in sorted(made))


def name_for_c(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Give tensors names that C accepts: an ONNX model's may hold slashes, and TVM prints them as they are."""
    clean = {p: _renamed(p, f"p{i}_") for i, p in enumerate(func.params)}

    def rename(var: tirx.Var) -> tirx.Var:
        if var not in clean:
            clean[var] = var if var.name.isidentifier() else _renamed(var, f"t{len(clean)}_")
        return clean[var]

    body = tvm_ffi.structural_map(func.body, (tirx.Var, rename), order="post")
    return tirx.PrimFunc([clean[p] for p in func.params], body, func.ret_type, func.attrs)


def _renamed(var: tirx.Var, prefix: str) -> tirx.Var:
    return tirx.Var(prefix + re.sub(r"[^A-Za-z0-9_]", "_", var.name), var.ty)


def _candidates(func: tirx.PrimFunc, work: Work, device: DeviceSpec) -> Iterator[_Candidate]:
    """The rules that fit, best first."""
    gemm, sums = find_gemm(func), find_sums(func)
    if sums and sums.length >= LONG_SUM and sums.results <= FEW_RESULTS:
        small = gemm is None or min(gemm.i, gemm.j) <= SMALL_GEMM
        yield from (_sums(func, work, sums, *pair, device) for pair in choose_lanes(sums, device.warp) if small)
    if gemm:
        yield from (_gemm(func, gemm, tile, device) for tile in choose_tiles(gemm))
    elif reduces_rows(func):
        yield from (_rows(func, work, chunks, threads, device) for chunks, threads in ((1, 256), (4, 128), (2, 128)))
    else:
        yield from _elements(func, work, device)
    yield from _elements(func, work, device, spare=True)


def _gemm(func: tirx.PrimFunc, gemm: Gemm, tile: Tile, device: DeviceSpec) -> _Candidate:
    steps = -(-gemm.k // tile.k)
    moved = 4.0 * ((tile.i + tile.j) * steps * tile.k + tile.i * tile.j)
    reuse = tile.micro_i * tile.micro_j / (tile.micro_i + tile.micro_j)
    return _Candidate(
        lambda: schedule_gemm(func, gemm, tile),
        lambda launch: rtask_us(
            device, launch.threads, 2.0 * tile.i * tile.j * steps * tile.k, moved,
            steps=steps, outputs=tile.micro_i * tile.micro_j, reuse=reuse,
        ),
    )  # fmt: skip


def _sums(func: tirx.PrimFunc, work: Work, sums: Sums, results: int, lanes: int, device: DeviceSpec) -> _Candidate:
    return _Candidate(
        lambda: schedule_sums(func, sums, results, lanes),
        lambda launch: rtask_us(
            device, launch.threads, work.flops / launch.blocks, work.nbytes / launch.blocks, steps=2
        ),
    )


def _rows(func: tirx.PrimFunc, work: Work, chunks: int, threads: int, device: DeviceSpec) -> _Candidate:
    return _Candidate(
        lambda: schedule_rows(func, chunks, threads),
        # Every chunk of a row repeats the row's sums.
        lambda launch: rtask_us(
            device, launch.threads, work.flops * chunks / launch.blocks, work.nbytes * chunks / launch.blocks, steps=4
        ),
    )


def _elements(func: tirx.PrimFunc, work: Work, device: DeviceSpec, *, spare: bool = False) -> Iterator[_Candidate]:
    """From several rTasks a unit to one in all; long loops only for want of others."""
    elements = count_elements(func)
    units = device.units
    for blocks, threads in (
        (units, 256),
        (4 * units, 256),
        (units // 4, 256),
        (8, 256),
        (2, 128),
        (2 * units, 64),
        (units, 32),
        (1, 32),
    ):
        turns = -(-elements // (blocks * threads))
        if turns <= MAX_TURNS or spare:
            yield _Candidate(
                lambda b=blocks, t=threads: schedule_elements(func, b, t),
                lambda launch, n=turns: rtask_us(
                    device, launch.threads, work.flops / launch.blocks, work.nbytes / launch.blocks, steps=n
                ),
                spare,
            )
