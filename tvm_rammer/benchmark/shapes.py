"""What another set of shapes of a model costs: to compile it, and to answer from the cache in a new process."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from ..driver import compile
from ..errors import ModelError
from ..open_shapes.module import SymbolicModule

ANSWER = """
import time
begun = time.process_time()
import tvm
imported = time.process_time()
import sys
import tvm_rammer
from tvm_rammer.runtime.tensors import TensorSpec, random_inputs
folder, threads, *sizes = sys.argv[1:]
module = tvm_rammer.compile(folder + "/model.onnx", threads=int(threads), cache=folder + "/cache", on_new_shape="error")
shapes = module.shapes.bind({name: int(size) for name, size in (text.split("=") for text in sizes)})
specs = [TensorSpec(spec.name, shapes[spec.name], spec.dtype) for spec in module.inputs]
module(*random_inputs(specs, 0))
print(imported - begun, time.process_time() - imported)
"""
"""A process that answers once from the cache; it tells the processor seconds of importing TVM, and those after that."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a set of shapes costs.

    Parameters
    ----------
    processor_s, wall_s : float
        Seconds of compiling it, in the process that compiled the ones before.
    import_s, answer_s : float
        Of a new process with a filled cache: processor seconds of importing TVM, and from there to the first answer.
    """

    processor_s: float
    wall_s: float
    import_s: float
    answer_s: float


def costs_of_shapes(model: onnx.ModelProto, every: Sequence[Mapping[str, int]], *, threads: int) -> list[Cost]:
    """Compile a model for one set of shapes after the other, and answer from the cache in new processes.

    Parameters
    ----------
    model : onnx.ModelProto
        With symbolic dimensions.
    every : sequence of (mapping of str to int)
        Sizes of these dimensions.
    threads : int

    Raises
    ------
    ModelError
        The model has no symbolic dimension, or a new process could not answer.
    """
    import tvm  # noqa: F401  # its seconds are no part of the first compilation

    with tempfile.TemporaryDirectory(prefix="rammer-") as name:
        folder = pathlib.Path(name)
        onnx.save(model, folder / "model.onnx")
        module = compile(folder / "model.onnx", threads=threads, cache=folder / "cache")
        if not isinstance(module, SymbolicModule):
            raise ModelError(f"the model {model.graph.name!r} has no symbolic dimension; give one that has")
        times = [_compiled(module, sizes) for sizes in every]
        answers = [_answered(folder, sizes, threads) for sizes in every]
        return [Cost(*took, *answer) for took, answer in zip(times, answers, strict=True)]


def _compiled(module: SymbolicModule, sizes: Mapping[str, int]) -> tuple[float, float]:
    """Processor and wall seconds."""
    processor, wall = time.process_time(), time.perf_counter()
    module.prepare(sizes)
    return time.process_time() - processor, time.perf_counter() - wall


def _answered(folder: pathlib.Path, sizes: Mapping[str, int], threads: int) -> tuple[float, float]:
    """Processor seconds of importing TVM, and from there to the answer."""
    arguments = [str(folder), str(threads), *(f"{name}={size}" for name, size in sizes.items())]
    done = subprocess.run(
        [sys.executable, "-c", ANSWER, *arguments], capture_output=True, text=True, check=False,
        env=os.environ | {"RAMMER_CACHE_BYTES": str(1 << 30), "TVM_NUM_THREADS": str(threads)},
    )  # fmt: skip
    if done.returncode:
        raise ModelError(f"a new process could not answer from the cache: {done.stderr.strip().splitlines()[-1]}")
    imported, answered = map(float, done.stdout.split())
    return imported, answered
