"""A CUDA rule consists of four functions: they describe the problem, list its tiles, cost a tile, and schedule it.

The design is Roller's (OSDI 2022, section 3): only tiles that are aligned to the hardware are listed, a micro
performance model ranks them, and only the best are built.
"""

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir.schedule import ScheduleError

from ...device import DeviceSpec
from ...ir import ITEM_BYTES, RKernel, Slices
from ...kernel import Pack, ScheduledKernel
from ..tiling import Function, Tile, Tiling, choices_of
from .cost import Cost, busy_us, rtask_us
from .lowered import launch_of

ProblemT = TypeVar("ProblemT")
TileT = TypeVar("TileT", bound=Tile)


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel that no schedule made, and how it wants its constants.

    Of the packed constant `sliced` each rTask reads a part of its own: all parts are as long, in the order of rTasks.
    """

    func: tirx.PrimFunc
    packs: Mapping[int, Pack] = field(default_factory=dict)
    sliced: int | None = None


@dataclass(frozen=True, slots=True)
class CudaRule(Generic[ProblemT, TileT]):
    """Makes the rKernels of one kind of function on a GPU; a `Rule`.

    Parameters
    ----------
    name : str
    find : callable
        Describes a function as a problem, such as the extents of a matrix product; None where the rule does not apply.
    tiles : callable
        Lists the aligned tiles of a problem: each is a tiling.
    tile : type
        Class of the tiles, a dataclass of integers: its fields are the choices of a tiling.
    cost : callable
        Number of rTasks of a tile, and the work of one of them.
    schedule : callable
        Makes the kernel: a schedule, or code where no schedule alone makes it.
    kept_cost : callable, optional
        The work of an rTask that finds its slice of a constant (`Code.sliced`) in its unit's shared memory.
    """

    name: str
    find: Callable[[Function], ProblemT | None]
    tiles: Callable[[ProblemT, DeviceSpec], Iterable[TileT]]
    tile: type[TileT]
    cost: Callable[[ProblemT, TileT], Cost]
    schedule: Callable[[tirx.PrimFunc, ProblemT, TileT], s_tir.Schedule | tirx.PrimFunc | Code]
    kept_cost: Callable[[ProblemT, TileT], Cost] | None = None

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All tilings that the rule would try; empty where it does not apply."""
        problem = _found(self.find, function)
        if problem is None:
            return ()
        return tuple(self._tiling(function, problem, tile) for tile in self.tiles(problem, function.device))

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """The code of a tiling; None where it does not fit the function, or breaks a limit of an rTask."""
        problem = _found(self.find, function)
        if problem is None or set(choices) != {field.name for field in fields(self.tile)}:
            return None
        tile = self.tile(**choices)
        tiling = self._tiling(function, problem, tile)
        try:
            scheduled = self.schedule(name_for_c(function.func), problem, tile)
        # What surrounds the problem cannot be inlined; dlight's helper reports that by an assertion.
        except (ScheduleError, ValueError, AssertionError):
            return None
        trace = scheduled.trace if isinstance(scheduled, s_tir.Schedule) else None
        code = _code_of(scheduled)
        launch = launch_of(code.func, function.device)
        if launch is None or launch.blocks != tiling.num_rtasks:
            return None
        spec = RKernel(
            name=f"{function.name}_{tiling.label}",
            function=function.name,
            num_rtasks=launch.blocks,
            rtask_us=tiling.rtask_us,
            threads=launch.threads,
            shared_bytes=launch.shared_bytes,
            slices=self._slices(code, launch.blocks, problem, tile, function.device),
            busy_us=busy_us(function.device, self.cost(problem, tile)),
        )
        return ScheduledKernel(spec, code.func, code.packs, trace, self.name)

    def _slices(self, code: Code, num_rtasks: int, problem: ProblemT, tile: TileT, device: DeviceSpec) -> Slices | None:
        """What a vEU may keep of a constant."""
        if code.sliced is None:
            return None
        packed = code.func.params[code.sliced]
        nbytes = math.prod(int(n) for n in packed.shape) * ITEM_BYTES[str(packed.dtype)]
        factor = self._kept_us(problem, tile, device) / rtask_us(device, self.cost(problem, tile))
        return Slices(code.sliced, nbytes // num_rtasks, factor)

    def _kept_us(self, problem: ProblemT, tile: TileT, device: DeviceSpec) -> float:
        """Time of an rTask whose slice of a constant is kept."""
        alone_us = rtask_us(device, self.cost(problem, tile))
        return alone_us if self.kept_cost is None else min(alone_us, rtask_us(device, self.kept_cost(problem, tile)))

    def _tiling(self, function: Function, problem: ProblemT, tile: TileT) -> Tiling:
        cost, device = self.cost(problem, tile), function.device
        alone_us = rtask_us(device, cost)
        kept_us = self._kept_us(problem, tile, device) if function.repeated else alone_us
        return Tiling(self.name, choices_of(tile), cost.num_rtasks, alone_us, kept_us - alone_us)


def _code_of(scheduled: s_tir.Schedule | tirx.PrimFunc | Code) -> Code:
    if isinstance(scheduled, s_tir.Schedule):
        scheduled = scheduled.mod["main"]
    return scheduled if isinstance(scheduled, Code) else Code(scheduled)


@functools.lru_cache(maxsize=256)
def _found(find: Callable[[Function], Any], function: Function) -> Any:
    return find(function)


def name_for_c(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Give tensors names that are C identifiers: an ONNX model's may contain slashes, and TVM prints them unchanged."""
    clean = {p: _renamed(p, f"p{i}_") for i, p in enumerate(func.params)}

    def rename(var: tirx.Var) -> tirx.Var:
        if var not in clean:
            clean[var] = var if var.name.isidentifier() else _renamed(var, f"t{len(clean)}_")
        return clean[var]

    body = tvm_ffi.structural_map(func.body, (tirx.Var, rename), order="post")
    return tirx.PrimFunc([clean[p] for p in func.params], body, func.ret_type, func.attrs)


def _renamed(var: tirx.Var, prefix: str) -> tirx.Var:
    return tirx.Var(prefix + re.sub(r"[^A-Za-z0-9_]", "_", var.name), var.ty)
