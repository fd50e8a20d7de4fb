"""A model for a GPU becomes a folder that CMake and nvcc build, without TVM and without this package."""

import os
import pathlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..compilation.compiler import load_request, lower_loaded
from ..compilation.request import Request
from ..compilation.target import tvm_target
from ..compilation.unrolling import with_loops
from ..device import DeviceSpec, host_cpu
from ..driver import compile_request
from ..errors import CodegenError, ModelError, TargetError, ToolError
from ..gpu_bundle.files import check_replaceable, replacing_folder
from ..gpu_bundle.kernels import HostFunction, lower_kernels
from ..gpu_bundle.onsite.plan import Plan, check_plan
from ..gpu_bundle.plans import plan_of
from ..persistent_codegen.cuda.memory import CONSTANT_NAMES
from ..runtime.tensors import input_values
from .source import Project, project_files
from .storage import Storage, place_buffers

KIND = "exported project"
TOLERANCE = 2e-2
"""Largest error over the largest magnitude of an output that the project's `main` calls right: the kernels are compiled
with nvcc's fast math, whose tanh and exp have few correct digits."""

WEIGHTS, COUNTERS = "weights", "state"
"""Of a persistent kernel's constants those that are no tables of its plan."""


@dataclass(slots=True)
class _Arrays:
    """Takes the constants of a plan."""

    values: dict[str, np.ndarray] = field(default_factory=dict)

    def add_array(self, array: np.ndarray) -> str:
        """Keep an array; return its name."""
        name = f"constant{len(self.values)}"
        self.values[name] = np.ascontiguousarray(array)
        return name


def export_project(
    request: Request, folder: str | os.PathLike[str], name: str, inputs: Mapping[str, np.ndarray] | None = None
) -> pathlib.Path:
    """Write a project.

    Parameters
    ----------
    request : Request
        One model, for a GPU.
    folder : path
        Is made, or replaced where it holds an exported project.
    name : str
        With which the identifiers and files of the project begin.
    inputs : mapping of str to numpy.ndarray, optional
        What the project's `main` runs the model on; random numbers for the others.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    TargetError
        The target is no GPU.
    ModelError, ScheduleError, CodegenError
        The model cannot be compiled; an input does not fit; or the model does something else than to launch kernels.
    ToolError
        The folder holds something else, or cannot be written.
    """
    target = pathlib.Path(folder)
    _check(request.device, target, name)
    made: Project
    made, arrays = with_loops(lambda loops: _make(replace(request, loops=loops), name), request.keeps_loops)
    given = list(input_values(made.inputs, inputs or {}).values())
    expected = _on_this_cpu(request, given)
    weights = _weights(made.plan, made.storage, arrays)
    with replacing_folder(target, KIND) as files:
        for path, text in project_files(replace(made, weights_checksum=zlib.adler32(weights))).items():
            files.write(path, text)
        files.write(f"{name}.weights", weights)
        files.write("recorded/inputs.bin", b"".join(np.ascontiguousarray(array).tobytes() for array in given))
        files.write("recorded/outputs.bin", b"".join(array.astype(np.float64).tobytes() for array in expected))
        files.finish()
    return target


def _check(device: DeviceSpec, folder: pathlib.Path, name: str) -> None:
    """Find out before long work what would be wrong afterwards."""
    if device.kind != "cuda":
        raise TargetError(
            f"export writes CUDA, and {device.name} is no GPU; give --target cuda:h200 or the like, "
            "or compile -o model.so for a library that plain TVM loads"
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ToolError(f"the project cannot be called {name!r}: give a name of small letters, digits and underlines")
    check_replaceable(folder, KIND)


def _make(request: Request, name: str) -> tuple[Project, dict[str, np.ndarray]]:
    """Compile a model; return its project, without the checksum of the weights, and its constants by name."""
    loaded = load_request(request)
    for spec in (*loaded.inputs, *loaded.outputs):
        if -1 in spec.shape or 0 in spec.shape:
            raise ModelError(
                f"{spec.name!r} has shape {list(spec.shape)}; a project needs tensors of a size that is known"
            )
    mod, record = lower_loaded(request, loaded)
    arrays = _Arrays()
    try:
        kernels, functions = lower_kernels(mod, tvm_target(request.device))
        plan = plan_of(name, mod, functions, {spec.name: spec.name for spec in loaded.inputs}, arrays)
    except CodegenError as error:
        left = ", ".join(f"{call} ({why})" for call, why in record.stock_calls) or "none"
        raise CodegenError(f"the model needs TVM to run: {error}. Left to stock TVM: {left}") from error
    if not plan.launches:
        raise ModelError(
            "the model launches no kernel: its results are inputs or constants; there is nothing to export"
        )
    check_plan(plan)
    tables, counters = _of_persistent_kernels(plan, functions)
    programs = {f"{program.name}_kernel": program for program in record.programs}
    storage = place_buffers(plan, (*tables, *counters))
    values = {buffer: (label, arrays.values[plan.buffers[buffer].file]) for buffer, label in tables.items()}
    return Project(
        name=name,
        device=request.device,
        kernels=kernels,
        plan=plan,
        storage=storage,
        tables=values,
        programs={buffer: programs[kernel] for buffer, kernel in counters.items()},
        inputs=loaded.inputs,
        outputs=loaded.outputs,
        weights_checksum=0,
        tolerance=TOLERANCE,
    ), arrays.values


def _of_persistent_kernels(plan: Plan, functions: Mapping[str, HostFunction]) -> tuple[dict[int, str], dict[int, str]]:
    """The constants that are tables of a plan, each with an identifier; those that the blocks of a kernel count in."""
    parameters = {call.kernel: call.arguments for function in functions.values() for call in function.calls}
    tables: dict[int, str] = {}
    counters: dict[int, str] = {}
    for launch in plan.launches:
        if launch.cooperative:
            for parameter, view in zip(parameters[launch.kernel], launch.arguments, strict=True):
                if parameter == COUNTERS:
                    counters[view.buffer] = launch.kernel
                elif parameter in CONSTANT_NAMES and parameter != WEIGHTS:
                    tables.setdefault(view.buffer, f"{launch.kernel.removesuffix('_kernel')}_{parameter}")
    return tables, counters


def _weights(plan: Plan, storage: Storage, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The weights as they lie at the beginning of an instance's memory."""
    data = np.zeros(storage.weights_bytes, np.uint8)
    for buffer, place in zip(plan.buffers, storage.places, strict=True):
        if buffer.kind == "constant" and place.offset < storage.weights_bytes:
            values = arrays[buffer.file].reshape(-1).view(np.uint8)
            data[place.offset : place.offset + values.size] = values
    return data.tobytes()


def _on_this_cpu(request: Request, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What the model computes."""
    module = compile_request(replace(request, device=host_cpu(), tuning_logs=None))
    return [np.asarray(leaf) for leaf in module.leaves(*inputs)]
