"""Hand-written rKernels: users register them for a pattern, and they compete with the constructed ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import tvm_ffi
from tvm import tirx
from tvm.backend.cuda.op import cuda_func_call
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from ..device import DeviceSpec
from ..errors import CodegenError
from ..ir import RKernel, align
from ..kernel import ScheduledKernel
from .analysis.parallel import parallel_extent
from .analysis.work import Work, shape_of
from .tiling import Function, Tiling

MAX_THREADS = 256
"""Threads of an rTask at most."""

Kind: TypeAlias = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class CudaSource:
    """A hand-written `__device__` function that does one rTask.

    It is declared as

        extern "C" __device__ void NAME(T0* p0, .., unsigned char* shared, int rtask, int tid)

    with a pointer for each parameter of the operator's function, its inputs, then its outputs; the rTask's shared
    memory (only where `shared_bytes` is not 0); the rTask's index; and the thread's index. All `threads` threads call
    it. They meet at `__barrier_sync_count(1, THREADS)`: `__syncthreads()` would wait for threads of other rTasks too.

    Parameters
    ----------
    function : str
        NAME.
    source : str
        CUDA text with that function and what it needs. It may be included several times, so guard it as a header.
    num_rtasks : int
        The grid.
    threads : int
        Of an rTask: a multiple of 32, at most 256.
    shared_bytes : int
    rtask_us : float or None
        Time of one rTask, in microseconds; None: by the operator's roofline.
    """

    function: str
    source: str
    num_rtasks: int
    threads: int
    shared_bytes: int = 0
    rtask_us: float | None = None


@dataclass(frozen=True, slots=True)
class TirKernel:
    """A hand-written rKernel in TIR.

    Parameters
    ----------
    func : tirx.PrimFunc
        Parameters as the operator's function has them. On a CPU one outermost parallel loop, whose iterations are the
        rTasks; on a GPU one kernel, whose blocks are the rTasks.
    rtask_us : float or None
        Time of one rTask, in microseconds; None: by the operator's roofline.
    """

    func: tirx.PrimFunc
    rtask_us: float | None = None


HandWritten: TypeAlias = TirKernel | CudaSource
Pattern: TypeAlias = tirx.PrimFunc | Callable[[tirx.PrimFunc], bool]
Make: TypeAlias = Callable[[tirx.PrimFunc, DeviceSpec], Iterable[HandWritten]]


@dataclass(frozen=True, slots=True)
class RegisteredRule:
    """A `Rule` whose tilings are hand-written kernels; the choice `variant` numbers those that `make` returns."""

    name: str
    pattern: Pattern
    make: Make

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """One for each kernel that `make` returns for a function of the pattern."""
        kernels = [self._kernel(function, variant) for variant in range(len(self._written(function)))]
        return [
            Tiling(self.name, (("variant", variant),), kernel.spec.num_rtasks, kernel.spec.rtask_us)
            for variant, kernel in enumerate(kernels)
        ]

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """The kernel that `make` returned as number `choices["variant"]`."""
        variant = choices.get("variant", -1)
        return self._kernel(function, variant) if 0 <= variant < len(self._written(function)) else None

    def _written(self, function: Function) -> list[HandWritten]:
        named = function.func.with_attr("global_symbol", function.name)
        return list(self.make(named, function.device)) if _matches(self.pattern, named) else []

    def _kernel(self, function: Function, variant: int) -> ScheduledKernel:
        written = self._written(function)[variant]
        tiling = Tiling(self.name, (("variant", variant),), 0, 0.0)
        spec, func = _describe(self.name, written, function)
        return ScheduledKernel(replace(spec, name=f"{function.name}_{tiling.label}"), func, rule=self.name)


_registered: dict[tuple[Kind, str], RegisteredRule] = {}


def register_rkernel(name: str, pattern: Pattern, make: Make, *, kind: Kind) -> None:
    """Let hand-written rKernels compete for every operator of a pattern, from the next compilation on.

    Parameters
    ----------
    name : str
        An identifier; a second registration under the same name and kind replaces the first.
    pattern : tirx.PrimFunc or callable
        The fused, unscheduled function itself (compared by structure), or a predicate on it; its name in the module
        is its `global_symbol`.
    make : callable
        Called with the fused function and the device; returns `TirKernel` and `CudaSource` objects, any number.
    kind : {"cpu", "cuda"}
        On which devices.

    Raises
    ------
    CodegenError
        `name` is no identifier, or `kind` is unknown. What `make` returns is checked at compile time: a kernel whose
        parameters, grid or threads do not fit raises a CodegenError then.
    """
    if not name.isidentifier():
        raise CodegenError(f"rKernels cannot be registered as {name!r}; give an identifier")
    if kind not in ("cpu", "cuda"):
        raise CodegenError(f"rKernels cannot be registered for {kind!r}; give 'cpu' or 'cuda'")
    _registered[kind, name] = RegisteredRule(f"registered_{name}", pattern, make)


def unregister_rkernel(name: str, *, kind: Kind) -> None:
    """Remove a registration, if there is one."""
    _registered.pop((kind, name), None)


def any_registered() -> bool:
    """Whether there are kernels that are not part of this package."""
    return bool(_registered)


def registered_rules(kind: Kind) -> tuple[RegisteredRule, ...]:
    """The rules that are registered for a kind of device, in order of registration."""
    return tuple(rule for (k, _), rule in _registered.items() if k == kind)


def _matches(pattern: Pattern, func: tirx.PrimFunc) -> bool:
    if not isinstance(pattern, tirx.PrimFunc):
        return bool(pattern(func))
    bare, wanted = (f.without_attr("global_symbol") for f in (func, pattern))
    return bool(tvm_ffi.structural_equal(bare, wanted, map_free_vars=True))


def _describe(name: str, written: HandWritten, function: Function) -> tuple[RKernel, tirx.PrimFunc]:
    """Check a hand-written kernel; return its description for the scheduler (without its final name) and its code."""
    device = function.device
    if isinstance(written, CudaSource):
        _check_source(name, written, device)
        func = _call_source(written, function.func)
        blocks, threads, shared_bytes = written.num_rtasks, written.threads, align(written.shared_bytes)
    else:
        func = written.func
        _check_parameters(name, func, function.func)
        blocks, threads, shared_bytes = _launch(name, func, device)
    rtask_us = written.rtask_us
    if rtask_us is None:
        rtask_us = _roofline_us(function, blocks)
    return RKernel(name, function.name, blocks, rtask_us, threads=threads, shared_bytes=shared_bytes), func


def _check_source(name: str, written: CudaSource, device: DeviceSpec) -> None:
    if device.kind != "cuda":
        raise CodegenError(f"{name}: CUDA source for {device.name}; register it with kind='cuda'")
    if written.num_rtasks < 1 or written.threads < 1 or written.threads % device.warp or written.threads > MAX_THREADS:
        raise CodegenError(
            f"{name}: {written.num_rtasks} rTasks of {written.threads} threads; give at least one rTask, and threads "
            f"in a multiple of {device.warp}, at most {MAX_THREADS}"
        )
    if "__syncthreads" in written.source:
        raise CodegenError(
            f"{name}: __syncthreads() would wait for other rTasks; use __barrier_sync_count(1, {written.threads})"
        )


def _check_parameters(name: str, func: tirx.PrimFunc, wanted: tirx.PrimFunc) -> None:
    def signature(f: tirx.PrimFunc) -> list[tuple[tuple[int, ...], str]]:
        return [(shape_of(p), str(p.dtype)) for p in f.params]

    if signature(func) != signature(wanted):
        raise CodegenError(
            f"{name}: parameters {signature(func)} for an operator with {signature(wanted)}; they must be the same"
        )


def _launch(name: str, func: tirx.PrimFunc, device: DeviceSpec) -> tuple[int, int, int]:
    """rTasks, threads and shared bytes of a scheduled function."""
    if device.kind == "cpu":
        extent = parallel_extent(func)
        if extent is None:
            raise CodegenError(
                f"{name} is not one outermost parallel loop, whose iterations would be the rTasks; schedule it as one"
            )
        return extent, 1, 0
    from .cuda.lowered import launch_of

    launch = launch_of(func, device)
    if launch is None:
        raise CodegenError(
            f"{name} is not one kernel of at most {MAX_THREADS} threads a block that leaves nothing outside of it; "
            "schedule it as one"
        )
    return launch.blocks, launch.threads, launch.shared_bytes


def _call_source(written: CudaSource, wanted: tirx.PrimFunc) -> tirx.PrimFunc:
    """A kernel whose blocks call the device function."""
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name(written.function)
        T.func_attr({"tirx.noalias": True})
        buffers = [T.arg(f"p{i}", T.buffer(shape_of(p), str(p.dtype))) for i, p in enumerate(wanted.params)]
        with (
            T.thread_binding(written.num_rtasks, thread="blockIdx.x") as rtask,
            T.thread_binding(written.threads, thread="threadIdx.x") as tid,
        ):
            pointers = [b.data for b in buffers]
            if written.shared_bytes:
                pointers.append(T.alloc_buffer((written.shared_bytes,), "uint8", scope="shared").data)
            T.evaluate(cuda_func_call(written.function, *pointers, rtask, tid, source_code=written.source))
    return builder.get()


def _roofline_us(function: Function, rtasks: int) -> float:
    """Time of an rTask at peak arithmetic, or at its share of the cache's bandwidth, whichever is longer."""
    device, work = function.device, Work.of(function.func)
    peak = device.flops_per_cycle * device.clock_ghz * 1e3
    return max(max(work.flops, 1.0) / rtasks / peak, work.nbytes / rtasks / (device.cache_gbps / device.units * 1e3))
