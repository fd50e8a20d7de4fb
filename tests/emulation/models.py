"""A model for a small GPU that is made up, with all its launches emulated: of persistent kernels, and of stock TVM's.

Plans for small devices have what those of real ones have for large models only: several vEUs on a unit, sums that are
split over rTasks, several loops. What decides about them is overruled here.
"""

import contextlib
import dataclasses
import importlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import onnx

from tests.emulation.emulate import kernel_parameters, run_emulated
from tvm_rammer import rkernel_gen, wavefront
from tvm_rammer.compilation import launch, regions, unrolling
from tvm_rammer.compilation.compiler import load_request, lower_loaded
from tvm_rammer.compilation.record import Compilation
from tvm_rammer.compilation.request import Request
from tvm_rammer.compilation.target import tvm_target
from tvm_rammer.compilation.unrolling import with_loops
from tvm_rammer.device import preset
from tvm_rammer.errors import ScheduleError, VerificationError
from tvm_rammer.gpu_bundle.kernels import lower_kernels
from tvm_rammer.gpu_bundle.onsite.plan import Plan
from tvm_rammer.gpu_bundle.plans import plan_of
from tvm_rammer.rkernel_gen.cuda import resources
from tvm_rammer.rkernel_gen.cuda.split import choose
from tvm_rammer.runtime.tensors import TensorSpec
from tvm_rammer.wavefront import POLICIES

_BUILD = importlib.import_module("tvm_rammer.persistent_codegen.cuda.kernel.build")
_NEVER_WRITTEN = 0xFF


@dataclass(frozen=True)
class Way:
    """How a model is compiled.

    Attributes
    ----------
    gpu : str
        A preset, but for its number of units.
    units, blocks : int
        How many there are, and vEUs on each.
    policy, sync : str
    split : bool
        Whether all sums are split that can be.
    several_loops : bool
        Whether several loops stay loops, however short they are.
    pick : int or None
        A seed by which each function gets one of its kernels.
    many : bool
        Whether the text is that of a program of many functions.
    """

    gpu: str = "cuda:h200"
    units: int = 4
    blocks: int = 1
    policy: str = "auto"
    sync: str = "auto"
    split: bool = False
    several_loops: bool = False
    pick: int | None = None
    many: bool = False


def random_way(rng: random.Random) -> Way:
    return Way(
        rng.choice(["cuda:h200", "cuda:h200", "cuda:a100"]), rng.choice([2, 3, 4, 5, 7, 8, 16]), rng.choice([1, 2, 3]),
        rng.choice(["auto", *POLICIES]), rng.choice(["auto", "auto", "auto", "global"]), rng.random() < 0.6,
        rng.random() < 0.5, rng.choice([None, rng.randrange(1 << 20)]), rng.random() < 0.3,
    )  # fmt: skip


@dataclass
class EmulatedModel:
    """The launches of a model, and its memory: counters go on from run to run."""

    text: str
    plan: Plan
    record: Compilation
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    values: Mapping[str, np.ndarray]
    memory: list[np.ndarray] = field(init=False)

    def __post_init__(self) -> None:
        self.memory = [np.full(buffer.nbytes, _NEVER_WRITTEN, np.uint8) for buffer in self.plan.buffers]
        for buffer, memory in zip(self.plan.buffers, self.memory, strict=True):
            if buffer.kind == "constant" and self.values[buffer.file].size:
                memory[...] = bytes_of(self.values[buffer.file])

    def run(self, feeds: Mapping[str, np.ndarray], seed: int) -> list[np.ndarray]:
        """The results; what is kept between operators holds no numbers at first."""
        for buffer, memory in zip(self.plan.buffers, self.memory, strict=True):
            if buffer.kind == "input":
                memory[...] = bytes_of(feeds[buffer.file])
            elif buffer.kind == "memory":
                memory[...] = _NEVER_WRITTEN
        for asked in self.plan.launches:
            names = [name.removesuffix("_ptr") for name, _ in kernel_parameters(self.text, asked.kernel)]
            args = {name: self._at(view) for name, view in zip(names, asked.arguments, strict=True)}
            read = [name for name, writes in zip(names, asked.writes, strict=True) if not writes and name != "state"]
            run_emulated(self.text, asked.kernel, asked.grid, asked.block, asked.shared_bytes, args, seed, read)
        return [
            self._at(view).copy().view(_type_of(spec)).reshape(spec.shape)
            for view, spec in zip(self.plan.outputs, self.outputs, strict=True)
        ]

    def _at(self, view: Any) -> np.ndarray:
        return self.memory[view.buffer][view.offset : view.offset + view.nbytes]


def emulated_model(model: onnx.ModelProto, way: Way, shapes: Mapping[str, Any] | None = None) -> EmulatedModel:
    """Compile a model whose shapes are known.

    Raises
    ------
    RammerError
        It cannot be compiled, or does something else than to launch kernels.
    """
    device = replace(preset(way.gpu), name="small", units=way.units)
    request = Request((model,), (shapes,), device, policy=way.policy, sync=way.sync)

    def made(loops: bool) -> EmulatedModel:
        asked = replace(request, loops=loops)
        loaded = load_request(asked)
        mod, record = lower_loaded(asked, loaded)
        text, functions = lower_kernels(mod, tvm_target(device))
        arrays = _Arrays({})
        plan = plan_of("model", mod, functions, {spec.name: spec.name for spec in loaded.inputs}, arrays)
        return EmulatedModel(text, plan, record, loaded.inputs, loaded.outputs, arrays.values)

    with _overruled(way):
        return with_loops(made, request.keeps_loops)


@dataclass
class _Arrays:
    values: dict[str, np.ndarray]

    def add_array(self, array: np.ndarray) -> str:
        self.values[f"constant{len(self.values)}"] = np.ascontiguousarray(array)
        return f"constant{len(self.values) - 1}"


@contextlib.contextmanager
def _overruled(way: Way) -> Iterator[None]:
    real = rkernel_gen.make_kernels

    def some_kernels(*args: Any) -> Any:
        kernels, rng = real(*args), random.Random(way.pick)
        picked = {name: tuple(rng.sample(some, min(1, len(some)))) for name, some in kernels.kernels.items()}
        return kernels if way.pick is None else dataclasses.replace(kernels, kernels=picked)

    def share_units(region: Any, programs: Any, module: Any, record: Compilation) -> Any:
        if way.blocks == 1 or region.body:
            return programs
        veus = way.blocks * way.units
        with contextlib.suppress(ScheduleError, VerificationError):  # some kernel leaves no room for so many
            return wavefront.schedule(
                region.graph, record.kernels, record.device, veus=veus, policy=way.policy, sync=way.sync,
                copies=record.copies,
            )  # fmt: skip
        return programs

    with (
        mock.patch.object(rkernel_gen, "make_kernels", some_kernels),
        mock.patch.object(regions, "_share_units", share_units),
        mock.patch.object(unrolling, "FEW_STEPS", 0 if way.several_loops else unrolling.FEW_STEPS),
        mock.patch.object(choose, "WORTH", float("inf") if way.split else choose.WORTH),
        mock.patch.object(_BUILD, "MANY_FUNCTIONS", 0 if way.many else _BUILD.MANY_FUNCTIONS),
        mock.patch.object(resources, "resources", lambda kernels, *_: [None] * len(kernels)),  # nvcc takes seconds
        mock.patch.object(launch, "resources_of", lambda *_: {}),
    ):
        yield


def bytes_of(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _type_of(spec: TensorSpec) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if spec.dtype == "bfloat16" else spec.dtype)
