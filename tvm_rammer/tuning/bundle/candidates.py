"""A folder that times candidates on a machine with a GPU, where there is neither TVM nor a network.

Right outputs are computed here, by TVM's CPU code of the unscheduled functions, and lie in the folder.
"""

import math
import pathlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm

from ...compilation.target import tvm_target
from ...device import DeviceSpec
from ...errors import CodegenError, ToolError
from ...gpu_bundle.files import Files, replacing_folder
from ...gpu_bundle.kernels import HostFunction, lower_kernels
from ...nvcc import compile_cuda
from ...rkernel_gen.measured import code_hash
from ..log.reader import identity
from ..measure.bench import parameters, unscheduled_outputs
from ..measure.evaluate import TOLERANCE, tuning_inputs
from ..tasks import Task
from ..trial import Trial

KERNELS_PER_FILE = 12
"""Kernels in a source file, so that nvcc starts less often."""

TOLERANCE_FACTOR = 20.0
"""Factor on the tolerances, for the low precision of exp and tanh in nvcc's fast math."""

EMPTY_KERNEL = 'extern "C" __global__ void rammer_nothing(float* a, float* b) {}\n'
_PACKAGE = pathlib.Path(__file__).parents[2]
_ONSITE = ("errors.py", "gpu_bundle/__init__.py", "gpu_bundle/onsite/__init__.py", "gpu_bundle/onsite/cuda.py",
           "gpu_bundle/onsite/jobs.py", "tuning/__init__.py", "tuning/bundle/__init__.py",
           "tuning/bundle/onsite/__init__.py", "tuning/bundle/onsite/main.py", "tuning/bundle/onsite/nvrtc.py",
           "tuning/bundle/onsite/worker.py")  # fmt: skip


def make_candidates(folder: pathlib.Path, trials: Sequence[Trial], device: DeviceSpec) -> int:
    """Write the folder.

    Parameters
    ----------
    folder : pathlib.Path
        Is made, or replaced where it holds such a folder.
    trials : sequence of Trial
        Of a GPU.
    device : DeviceSpec

    Returns
    -------
    int
        Candidates in it. What is more than one kernel, or what nvcc rejects, is left out.

    Raises
    ------
    ToolError
        The folder holds something else, or times that were measured in it, or it cannot be written.
    """
    with replacing_folder(folder, "folder of candidates", keep=("times.jsonl",)) as files:
        return _write_candidates(files, trials, device)


def _write_candidates(files: Files, trials: Sequence[Trial], device: DeviceSpec) -> int:
    tasks = {t.task.function.key: t.task for t in trials}
    functions = {key: _function(files, task) for key, task in tasks.items()}
    numbered = list(enumerate(trials))
    compile_text = _compiler(device)
    lowered = _lowered([numbered[i : i + KERNELS_PER_FILE] for i in range(0, len(numbered), KERNELS_PER_FILE)], device)
    with ThreadPoolExecutor() as pool:
        cubins = list(pool.map(lambda batch: compile_text(batch.text), lowered))
    pairs = list(zip(lowered, cubins, strict=True))
    # Of a file that nvcc rejects, each kernel is compiled alone.
    alone = _lowered([[item] for batch, cubin in pairs if cubin is None for item in batch.trials], device)
    pairs += [(batch, compile_text(batch.text)) for batch in alone]
    candidates = [c for batch, cubin in pairs if cubin is not None for c in _candidates(files, batch, cubin)]
    about = {
        "target": device.name,
        "device": identity(device),
        "functions": functions,
        "nothing": _empty_kernel(files, compile_text),
        "candidates": candidates,
    }
    files.write_json("candidates.json", about)
    _add_program(files)
    files.finish()
    return len(candidates)


def _function(files: Files, task: Task) -> dict[str, Any]:
    """Write the right outputs of a function."""
    outputs = [
        {
            "file": files.add_array(array),
            "shape": array.shape,
            "dtype": str(array.dtype),
            "tolerance": TOLERANCE.get(str(array.dtype), 0.0) * TOLERANCE_FACTOR,
        }
        for array in unscheduled_outputs(task)
    ]
    return {"name": task.function.name, "outputs": outputs}


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some numbered trials, their CUDA text, and how each is launched."""

    trials: Sequence[tuple[int, Trial]]
    text: str
    hosts: Mapping[str, HostFunction]


def _compiler(device: DeviceSpec) -> Callable[[str], bytes | None]:
    """Compiles CUDA text: to nothing where there is no nvcc, and to None what nvcc rejects."""

    def compile_text(text: str) -> bytes | None:
        try:
            return compile_cuda(text, device.arch).cubin
        except ToolError:
            return None

    return compile_text if shutil.which("nvcc") else lambda text: b""


def _lowered(batches: Sequence[Sequence[tuple[int, Trial]]], device: DeviceSpec) -> list[_Batch]:
    """Lower batches of trials; where that fails, the two halves of a batch."""
    target = tvm_target(device)
    found = []
    for batch in batches:
        funcs = {f"c{number}": t.kernel.func.with_attr("global_symbol", f"c{number}") for number, t in batch}
        try:
            text, hosts = lower_kernels(tvm.IRModule(funcs), target)
        except CodegenError:
            half = len(batch) // 2
            found += _lowered([batch[:half], batch[half:]], device) if half else []
        else:
            found.append(_Batch(batch, text, hosts))
    return found


def _candidates(files: Files, batch: _Batch, cubin: bytes) -> list[dict[str, Any]]:
    """Write a compiled batch; leave out what is more than one kernel."""
    prefix = f"kernels/{batch.trials[0][0]}"
    source = files.write(f"{prefix}.cu", batch.text)
    compiled = files.write(f"{prefix}.cubin", cubin) if cubin else ""
    single = {name: host for name, host in batch.hosts.items() if len(host.calls) == 1 and not host.memory}
    return [
        _candidate(files, number, trial, single[f"c{number}"]) | {"source": source, "cubin": compiled}
        for number, trial in batch.trials
        if f"c{number}" in single
    ]


def _candidate(files: Files, number: int, trial: Trial, host: HostFunction) -> dict[str, Any]:
    (call,) = host.calls
    arguments = _arguments(files, trial)
    return {
        "number": number,
        "function": trial.task.function.key,
        "name": trial.kernel.spec.name,
        "rule": trial.tiling.rule,
        "choices": dict(trial.tiling.choices),
        "num_rtasks": math.prod(call.grid),
        "code": code_hash(trial.kernel),
        "kernel": call.kernel,
        "grid": call.grid,
        "block": call.block,
        "shared_bytes": call.shared_bytes,
        "arguments": [arguments[host.parameters.index(name)] for name in call.arguments],
    }


def _arguments(files: Files, trial: Trial) -> list[Mapping[str, Any]]:
    """For each parameter the file of its array, or which output it is."""
    shapes, dtypes = parameters(trial.task.function)
    count = trial.task.num_inputs
    arrays = tuning_inputs(shapes[:count], dtypes)
    packed = [trial.kernel.packs[i].apply(a) if i in trial.kernel.packs else a for i, a in enumerate(arrays)]
    inputs = [{"file": files.add_array(np.asarray(a))} for a in packed]
    return [*inputs, *({"output": i} for i in range(len(shapes) - count))]


def _empty_kernel(files: Files, compile_text: Callable[[str], bytes | None]) -> dict[str, Any]:
    """The empty kernel, whose time is the cost of a launch."""
    array = files.add_array(np.zeros(4, np.float32))
    cubin = compile_text(EMPTY_KERNEL)
    return {
        "kernel": "rammer_nothing",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_bytes": 0,
        "arguments": [{"file": array}, {"file": array}],
        "source": files.write("kernels/nothing.cu", EMPTY_KERNEL),
        "cubin": files.write("kernels/nothing.cubin", cubin) if cubin else "",
    }


def _add_program(files: Files) -> None:
    files.write("time_candidates.py", (_PACKAGE / "tuning/bundle/onsite/time_candidates.py").read_bytes())
    files.write("lib/tvm_rammer/__init__.py", '"""The part of tvm_rammer that runs here."""\n')
    for path in _ONSITE:
        files.write(f"lib/tvm_rammer/{path}", (_PACKAGE / path).read_bytes())
