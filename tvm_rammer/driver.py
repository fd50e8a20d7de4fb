"""The driver: `compile` and `compile_together`; what was compiled before comes from the cache, without the compiler."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .compilation.request import Request
from .compilation.target import resolve_device, with_threads
from .compilation.unrolling import with_loops
from .errors import ModelError
from .runtime.module import CONCURRENCY, RammerModule
from .runtime.tensors import TensorSpec
from .saving.cache import find_entry

if TYPE_CHECKING:
    from .wavefront.options import PolicyOptions

Size = int | Sequence[int]


def compile(
    model: Any,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, Size] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: "PolicyOptions | None" = None,
    tuning_logs: str | os.PathLike[str] | None = None,
    explore: int = 0,
    concurrency: int = CONCURRENCY,
    threads: int | None = None,
    loops: bool = True,
    cache: bool | str | os.PathLike[str] = True,
) -> RammerModule:
    """Compile a model to persistent rPrograms inside a Relax VM executable.

    Parameters
    ----------
    model : path of an .onnx or .pt2 file, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
    target : str, tvm.target.Target or DeviceSpec
        "cpu", "cuda:h200", "cuda:h100", "cuda:a100", "cuda:v100", or a device of your own.
    shapes : mapping of str to int or sequence of int, optional
        By the name of an input the static shape that the model leaves open, or by the name of a symbolic dimension its
        size, as in `{"batch": 1}`.
    policy : str
        A scheduling policy (`tvm_rammer.wavefront.POLICIES`).
    sync : {"auto", "global"}
        Waits only where there are dependences, or a barrier between waves.
    options : PolicyOptions, optional
        What the policies `ios` and `search` may be told (`tvm_rammer.wavefront.PolicyOptions`).
    tuning_logs : path, optional
        What `tvm-rammer tune` wrote, or a MetaSchedule database: its records compete as rKernels.
    explore : int
        That many first calls cycle through plans whose predicted times are close; then the fastest is kept (Astra,
        ASPLOS 2019). Each plan is compiled, so compiling takes up to six times as long. The result is appended to
        `tuning_logs`, where they are given, so that the next compilation need not explore.
    concurrency : int
        How many threads' calls may run at the same time on a CPU, each with a workspace of its own; others wait. With 1
        one call runs at a time. A module for a GPU always runs one call at a time.
    threads : int, optional
        vEUs of a CPU: how many threads work on one call, as far as there are processors. By default one for each core
        that the process may use (`TVM_NUM_THREADS`, affinity, quota).
    loops : bool
        Whether recurrent layers and loops of an ONNX model stay loops on a CPU, where they can: the time of compiling
        does not depend on their length then. Otherwise they are unrolled.
    cache : bool or path
        Whether to keep the module on disk and to take it from there when the same is compiled again, or the folder in
        which to do so; True means `models` in the folder `RAMMER_CACHE`. Modules for a GPU and those that
        explore are not kept.

    Returns
    -------
    RammerModule

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    device = with_threads(resolve_device(target), threads)
    request = Request(
        (model,), (shapes,), device, policy=policy, sync=sync, options=options, tuning_logs=tuning_logs,
        explore=explore, loops=loops,
    )  # fmt: skip
    return compile_request(request, concurrency, cache)


def compile_together(
    models: Sequence[Any],
    *,
    shares: Sequence[float] | None = None,
    target: Any = "cpu",
    shapes: Sequence[Mapping[str, Size] | None] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: "PolicyOptions | None" = None,
    tuning_logs: str | os.PathLike[str] | None = None,
    explore: int = 0,
    concurrency: int = CONCURRENCY,
    threads: int | None = None,
    cache: bool | str | os.PathLike[str] = True,
) -> RammerModule:
    """Compile several models to one module: its rPrograms run them side by side on one vDevice.

    Parameters
    ----------
    models : sequence
        Each as `compile` takes it.
    shares : sequence of float, optional
        A positive number for each model, which gets vEUs of its own in this proportion. Without shares all models use
        all vEUs; of operators that the policy holds equal, those of earlier models come first.
    shapes : sequence of (mapping or None), optional
        For each model, as `compile` takes them.
    target, policy, sync, options, tuning_logs, explore, concurrency, threads, cache
        As in `compile`.

    Returns
    -------
    RammerModule
        Its inputs are those of all models; input `x` of the second one is called `model1_x`. It returns a tuple with
        the result of each.

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    if not models or len(shapes or models) != len(models) or len(shares or models) != len(models):
        raise ModelError(
            f"{len(models)} models, {len(shapes or ())} shapes, {len(shares or ())} shares; give at least one model, "
            "and for each one share and one mapping of shapes, or none at all"
        )
    device = with_threads(resolve_device(target), threads)
    parts = None if shares is None else tuple(shares)
    request = Request(
        tuple(models), tuple(shapes or [None] * len(models)), device, True, parts, policy, sync, options, tuning_logs,
        explore,
    )  # fmt: skip
    return compile_request(request, concurrency, cache)


def compile_request(
    request: Request,
    concurrency: int = CONCURRENCY,
    cache: bool | str | os.PathLike[str] = True,
    loaded: Callable[[Sequence[TensorSpec]], None] = lambda inputs: None,
) -> RammerModule:
    """Compile what is not in the cache.

    Parameters
    ----------
    request : Request
    concurrency, cache
        As in `compile`.
    loaded : callable
        Told of the model's inputs before it is compiled; not called where the module comes from the cache.

    Raises
    ------
    ModelError, TargetError, ScheduleError, CodegenError, ToolError
        See `tvm_rammer.errors`.
    """
    if not isinstance(concurrency, int) or concurrency < 1:
        raise ModelError(f"concurrency is {concurrency!r}; give an integer, at least 1")
    request = _with_relax(request)
    entry = find_entry(request, cache)
    if entry is not None and (module := entry.load(concurrency)):
        return module
    module = with_loops(lambda loops: _compile(replace(request, loops=loops), concurrency, loaded), request.loops)
    if entry is not None and (kept := entry.store(module, concurrency)):
        return kept
    return module


def _compile(request: Request, concurrency: int, loaded: Callable[[Sequence[TensorSpec]], None]) -> RammerModule:
    from .compilation.compiler import compile_loaded, load_request

    model = load_request(request)
    loaded(model.inputs)
    return RammerModule(compile_loaded(request, model), model.inputs, model.outputs, concurrency)


def _with_relax(request: Request) -> Request:
    """Import programs of torch, which have no bytes that a cache could know them by; importing them is quick."""
    if not any(type(model).__name__ == "ExportedProgram" for model in request.models):
        return request
    from .relay_passes import load_model

    return replace(request, models=[load_model(m, s) for m, s in zip(request.models, request.shapes, strict=True)])
