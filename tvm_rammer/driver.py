"""The driver: `compile` and `compile_together`; what was compiled before comes from the cache, without the compiler."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from . import debug
from .arguments import names_of, whole
from .compilation.request import Request
from .compilation.target import resolve_device, with_threads
from .compilation.unrolling import with_loops
from .errors import DataLoopError, LoopError, ModelError
from .open_shapes.given import has_symbols
from .open_shapes.module import MOST_SHAPES, OnNewShape, SymbolicModule, check_options
from .open_shapes.specialise import RequestMaker, open_request
from .runtime.length import LengthModule
from .runtime.module import CONCURRENCY, RammerModule
from .runtime.tensors import TensorSpec
from .saving.cache import find_entry
from .saving.key import digests_of

if TYPE_CHECKING:
    from .wavefront.options import PolicyOptions

Size = int | Sequence[int]
Extent = int | str | tuple[str, int, int]
"""A size, the name of a symbolic dimension, or a name with the least and the greatest size."""


def compile(
    model: Any,
    *,
    target: Any = "cpu",
    shapes: Mapping[str, int | Sequence[Extent]] | None = None,
    policy: str = "auto",
    sync: str = "auto",
    options: "PolicyOptions | None" = None,
    tuning_logs: str | os.PathLike[str] | None = None,
    explore: int = 0,
    concurrency: int = CONCURRENCY,
    threads: int | None = None,
    loops: bool = True,
    cache: bool | str | os.PathLike[str] = True,
    on_new_shape: OnNewShape = "compile",
    most_shapes: int = MOST_SHAPES,
) -> RammerModule:
    """Compile a model to persistent rPrograms inside a Relax VM executable.

    A model some of whose dimensions stay open becomes a `SymbolicModule`, which compiles itself for the shapes that
    come.

    Parameters
    ----------
    model : path of an .onnx or .pt2 file, onnx.ModelProto, tvm.IRModule or torch.export.ExportedProgram
    target : str, tvm.target.Target or DeviceSpec
        "cpu", "cuda:h200", "cuda:h100", "cuda:a100", "cuda:v100", the path of a .json file with a device's figures,
        or a device of your own.
    shapes : mapping of str to int or sequence, optional
        By the name of an input the shape that the model leaves open, or by the name of a symbolic dimension its size,
        as in `{"batch": 1}`, or its bounds, as in `{"batch": (1, 32)}`. A shape holds sizes, names of dimensions that
        stay open, and names with bounds: `(1, 3, 48, ("width", 32, 1024))`.
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
        Whether recurrent layers, and loops of an ONNX model, may stay loops: the time of compiling does not depend on
        their length then. On a GPU only one that is alone does, and those that are too long to be unrolled.
    cache : bool or path
        Whether to keep the module on disk and to take it from there when the same is compiled again, or the folder in
        which to do so; True means `models` in the folder `RAMMER_CACHE`. Modules for a GPU and those that
        explore are not kept.
    on_new_shape : {"compile", "stock", "error"}
        Where dimensions stay open: what becomes of a call with shapes that are neither ready nor in the cache. It waits
        until they are compiled; it is answered by stock TVM while another thread compiles them; it is refused.
    most_shapes : int
        Where dimensions stay open: for how many sets of shapes the module is kept in memory.

    Returns
    -------
    RammerModule
        A `SymbolicModule` where dimensions stay open.

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
    check_options(on_new_shape, most_shapes)
    request = _named(_with_relax(request), cache)
    if not has_symbols(shapes) and (module := _from_cache(request, concurrency, cache)):
        return module
    opened = open_request(request)
    if opened is None:
        return compile_request(request, concurrency, cache)
    if not opened.shapes.is_open:
        spelled_out = replace(request, shapes=(opened.shapes.bind({}),))  # as a module of open shapes asks for them
        if shapes and (module := _from_cache(spelled_out, concurrency, cache)):
            return module
        return compile_request(spelled_out if has_symbols(shapes) else request, concurrency, cache)
    request.check_policy()
    maker = RequestMaker(
        opened,
        build=partial(compile_request, concurrency=concurrency, cache=cache),
        find=partial(_from_cache, concurrency=concurrency, cache=cache),
    )
    return SymbolicModule(
        opened.signature, opened.shapes, maker, on_new_shape, most_shapes, _one_by_one(request, on_new_shape)
    )


def _one_by_one(request: Request, on_new_shape: OnNewShape) -> str:
    """Why each length of a sequence is to be compiled by itself; empty where one module may serve all lengths."""
    if not request.keeps_loops:
        return "loops are unrolled"
    if request.explore:
        return "plans are explored"
    return "stock TVM answers meanwhile" if on_new_shape == "stock" else ""


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
    models = names_of("models", models)
    parts = None if shares is None else tuple(names_of("shares", shares))
    if not models or len(shapes or models) != len(models) or len(parts or models) != len(models):
        raise ModelError(
            f"{len(models)} models, {len(shapes or ())} shapes, {len(parts or ())} shares; give at least one model, "
            "and for each one share and one mapping of shapes, or none at all"
        )
    device = with_threads(resolve_device(target), threads)
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
    request = _named(_with_relax(request), cache)
    if module := _from_cache(request, concurrency, cache):
        return module
    if request.length is not None:
        module = _compile(request, concurrency, loaded)
    else:
        module = with_loops(
            lambda loops: _compile(replace(request, loops=loops), concurrency, loaded), request.keeps_loops
        )
    entry = find_entry(request, cache)
    if entry is not None and (kept := entry.store(module, concurrency)):
        return kept
    return module


def _compile(request: Request, concurrency: int, loaded: Callable[[Sequence[TensorSpec]], None]) -> RammerModule:
    from .compilation.compiler import compile_loaded, load_request

    model = load_request(request)
    loaded(model.inputs)
    try:
        exploration = compile_loaded(request, model)
    except DataLoopError as error:
        debug.say(1, f"each round of what data end is called: {error}")
        return _compile(replace(request, data_loops=False), concurrency, lambda inputs: None)
    except LoopError as error:
        if not model.rolled:
            raise
        debug.say(1, f"what the model has step by step stays so: {error}")
        return _compile(replace(request, roll=False), concurrency, lambda inputs: None)
    if model.length is not None:
        return LengthModule(exploration, model.inputs, model.outputs, model.length, concurrency)
    return RammerModule(exploration, model.inputs, model.outputs, concurrency)


def _from_cache(request: Request, concurrency: int, cache: bool | str | os.PathLike[str]) -> RammerModule | None:
    """What the cache has of a request."""
    whole("concurrency", concurrency, 1)
    entry = find_entry(request, cache)
    return entry.load(concurrency) if entry is not None else None


def _with_relax(request: Request) -> Request:
    """Import programs of torch, which have no bytes that a cache could know them by; importing them is quick."""
    if not any(type(model).__name__ == "ExportedProgram" for model in request.models):
        return request
    from .relay_passes import as_relax

    return replace(request, models=[as_relax(model) or model for model in request.models])


def _named(request: Request, cache: bool | str | os.PathLike[str]) -> Request:
    """A request with the digests of its models, if they are wanted: finding them out reads all weights."""
    if request.digests or cache is False or debug.cache_bytes() == 0:
        return request
    return replace(request, digests=digests_of(request.models))
