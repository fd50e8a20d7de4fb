"""A CUDA rule is put together from four functions: what form it sees, its tiles, what a tile costs, and its schedule.

The frame is Roller's (OSDI 2022, section 3): tiles are aligned to the hardware when they are listed, a micro
performance model ranks them, and only what is ranked best gets code.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.s_tir.schedule import ScheduleError

from ...device import DeviceSpec
from ...ir import RKernel
from ...kernel import ScheduledKernel
from ..tiling import Function, Tiling
from .cost import Cost, rtask_us
from .lowered import measure

Form = TypeVar("Form")
Tile = TypeVar("Tile")


@dataclass(frozen=True, slots=True)
class CudaRule(Generic[Form, Tile]):
    """Makes the rKernels of one form of function on a GPU; a `Rule`.

    Parameters
    ----------
    name : str
    find : callable
        What the rule has to know of a function; None where the function is not of its form.
    tiles : callable
        The aligned tiles of a function: its tilings.
    tile : type
        Their class, a dataclass of integers: the choices of a tiling are its fields.
    cost : callable
        Number of rTasks of a tile, and what one of them does.
    schedule : callable
        The function with its kernel: a schedule, or a function where no schedule alone makes it.
    """

    name: str
    find: Callable[[Function], Form | None]
    tiles: Callable[[Form, DeviceSpec], Iterable[Tile]]
    tile: type[Tile]
    cost: Callable[[Form, Tile], Cost]
    schedule: Callable[[tirx.PrimFunc, Form, Tile], s_tir.Schedule | tirx.PrimFunc]

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All tilings that the rule would try; empty where the function is not of its form."""
        form = _found(self.find, function)
        if form is None:
            return ()
        return tuple(self._tiling(function.device, form, tile) for tile in self.tiles(form, function.device))

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """The code of a tiling; None where it does not fit the function, or breaks a limit of an rTask."""
        form = _found(self.find, function)
        if form is None or set(choices) != {field.name for field in fields(self.tile)}:
            return None
        tile = self.tile(**choices)
        tiling = self._tiling(function.device, form, tile)
        try:
            scheduled = self.schedule(name_for_c(function.func), form, tile)
        # Something around the form cannot be inlined; dlight's helper says so by an assertion.
        except (ScheduleError, ValueError, AssertionError):
            return None
        traced = isinstance(scheduled, s_tir.Schedule)
        func = scheduled.mod["main"] if traced else scheduled
        launch = measure(func, function.device)
        if launch is None or launch.blocks != tiling.num_rtasks:
            return None
        spec = RKernel(
            name=f"{function.name}_{tiling.label}",
            function=function.name,
            num_rtasks=launch.blocks,
            rtask_us=tiling.rtask_us,
            threads=launch.threads,
            shared_bytes=launch.shared_bytes,
        )
        return ScheduledKernel(spec, func, trace=scheduled.trace if traced else None)

    def _tiling(self, device: DeviceSpec, form: Form, tile: Tile) -> Tiling:
        cost = self.cost(form, tile)
        choices = tuple((field.name, getattr(tile, field.name)) for field in fields(self.tile))
        return Tiling(self.name, choices, cost.num_rtasks, rtask_us(device, cost))


@functools.lru_cache(maxsize=256)
def _found(find: Callable[[Function], Any], function: Function) -> Any:
    return find(function)


def start(func: tirx.PrimFunc) -> s_tir.Schedule:
    """A schedule of one function that does not print it whenever a step fails."""
    return s_tir.Schedule(tvm.IRModule({"main": func}), error_render_level="none")


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
