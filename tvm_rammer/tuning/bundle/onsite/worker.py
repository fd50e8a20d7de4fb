"""The candidates of one function on the GPU: each is checked, then timed; one line of JSON for each."""

import ctypes
import json
import math
import statistics
from collections.abc import Callable, Collection
from ctypes import c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import ToolError
from ....gpu_bundle.onsite.cuda import Cuda
from .nvrtc import compile_with_nvrtc

LAUNCHES = 20
"""Launches in a CUDA graph: the times are of kernels that follow each other without the host."""

BATCH_US, BATCHES = 3000.0, 7
"""A measurement lasts so long, about; and how many there are."""

NAN_BYTE = 0xFF
Emit = Callable[[dict[str, Any]], None]


class Worker:
    """The arrays of one function on the GPU, and what runs on them.

    Parameters
    ----------
    folder : pathlib.Path
    function : dict
        Of `candidates.json`: its inputs and its right outputs.
    cuda : Cuda
    nvrtc : str
        Path of NVRTC; empty to look for it.
    """

    def __init__(self, folder: Path, function: dict[str, Any], cuda: Cuda, nvrtc: str) -> None:
        self._folder, self._function, self._cuda, self._nvrtc = folder, function, cuda, nvrtc
        self._stream = cuda.stream()
        self._modules: dict[str, c_void_p] = {}
        self._files: dict[str, int] = {}
        self._outputs = [cuda.allocate(self._size(output)) for output in function["outputs"]]

    @staticmethod
    def _size(output: dict[str, Any]) -> int:
        return math.prod(int(n) for n in output["shape"]) * int(np.dtype(output["dtype"]).itemsize)

    def _file(self, name: str) -> int:
        """The address of an array that lies in a file."""
        if name not in self._files:
            data = (self._folder / name).read_bytes()
            self._files[name] = self._cuda.allocate(len(data))
            self._cuda.upload(self._files[name], data)
        return self._files[name]

    def _module(self, candidate: dict[str, Any]) -> c_void_p:
        source = candidate["source"]
        if source not in self._modules:
            architecture = str(self._cuda.describe()["architecture"])
            path = self._folder / candidate["cubin"] if candidate["cubin"] else self._folder / f"{source}.cubin"
            if not path.is_file():
                path.write_bytes(compile_with_nvrtc((self._folder / source).read_text(), architecture, self._nvrtc))
            self._modules[source] = self._cuda.load_module(path)
        return self._modules[source]

    def measure(self, candidate: dict[str, Any]) -> dict[str, Any]:
        """Check a candidate, then time it.

        Returns
        -------
        dict
            `run_us`: microseconds of a launch within a graph of launches, several times; or `error`.
        """
        function = self._cuda.kernel(self._module(candidate), candidate["kernel"], candidate["shared_bytes"])
        launch = self._launch(function, candidate)
        for address, output in zip(self._outputs, self._function["outputs"], strict=True):
            self._cuda.fill(address, self._size(output), NAN_BYTE)
        launch()
        self._cuda.synchronize()
        if problem := self._difference():
            return {"error": f"wrong result: {problem}"}
        return {"run_us": self._times(launch)}

    def empty_kernel_us(self, candidate: dict[str, Any]) -> float:
        """Time of an empty kernel, launched as all others are."""
        function = self._cuda.kernel(self._module(candidate), candidate["kernel"], 0)
        return statistics.median(self._times(self._launch(function, candidate)))

    def _launch(self, function: c_void_p, candidate: dict[str, Any]) -> Callable[[], None]:
        addresses = (c_uint64 * max(1, len(candidate["arguments"])))(*map(self._address, candidate["arguments"]))
        size = ctypes.sizeof(c_uint64)
        pointers = (c_void_p * len(addresses))(*(ctypes.addressof(addresses) + i * size for i in range(len(addresses))))
        shape = [c_uint(n) for n in (*candidate["grid"], *candidate["block"], candidate["shared_bytes"])]
        kept = (addresses, pointers)

        def launch() -> None:
            self._cuda.call("cuLaunchKernel", function, *shape, self._stream, kept[1], None)

        return launch

    def _address(self, argument: dict[str, Any]) -> int:
        return self._file(argument["file"]) if "file" in argument else self._outputs[argument["output"]]

    def _difference(self) -> str:
        for i, (address, output) in enumerate(zip(self._outputs, self._function["outputs"], strict=True)):
            data = self._cuda.download(address, self._size(output))
            got = np.frombuffer(data, output["dtype"]).astype(np.float64)
            want = np.frombuffer((self._folder / output["file"]).read_bytes(), output["dtype"]).astype(np.float64)
            finite = np.isfinite(want)
            if not (np.array_equal(got[~finite], want[~finite], equal_nan=True) and np.isfinite(got[finite]).all()):
                return f"output {i}: values are not finite"
            error = np.abs(got[finite] - want[finite]).max(initial=0.0)
            scale = np.abs(want[finite]).max(initial=0.0)
            if error > scale * output["tolerance"]:
                return f"output {i}: off by {error:.1e} where the largest value is {scale:.1e}"
        return ""

    def _times(self, launch: Callable[[], None]) -> list[float]:
        self._cuda.begin_capture(self._stream)
        try:
            for _ in range(LAUNCHES):
                launch()
        finally:
            graph = self._cuda.end_capture(self._stream)
        self._batch_us(graph, 3)
        runs = max(1, round(BATCH_US / max(1.0, self._batch_us(graph, 3) / 3)))
        return [round(self._batch_us(graph, runs) / runs / LAUNCHES, 4) for _ in range(BATCHES)]

    def _batch_us(self, graph: c_void_p, runs: int) -> float:
        def launch() -> None:
            for _ in range(runs):
                self._cuda.call("cuGraphLaunch", graph, self._stream)

        return self._cuda.timed_us(self._stream, launch)


def work_on(folder: Path, key: str, only: Collection[int], libcuda: str, nvrtc: str, emit: Emit) -> None:
    """Check and time some candidates of one function.

    Parameters
    ----------
    folder : pathlib.Path
    key : str
        The function.
    only : collection of int
        Numbers of candidates.
    libcuda, nvrtc : str
        Paths of the libraries; empty to look for them.
    emit : callable
        Takes each event as soon as it is known: `begin` with a number, then what `Worker.measure` returned.

    Raises
    ------
    ToolError
        There is no GPU, or a kernel has broken the context.
    """
    about = json.loads((folder / "candidates.json").read_text(encoding="utf-8"))
    cuda = Cuda(libcuda)
    gpu = cuda.describe()
    worker = Worker(folder, about["functions"][key], cuda, nvrtc)
    emit({"gpu": gpu, "nothing_us": worker.empty_kernel_us(about["nothing"])})
    for candidate in about["candidates"]:
        if candidate["number"] not in only:
            continue
        emit({"begin": candidate["number"]})
        try:
            result = worker.measure(candidate)
        except ToolError as error:
            emit({"number": candidate["number"], "error": str(error)})
            cuda.synchronize()  # fails once a kernel has broken the context: another process continues
        else:
            emit({"number": candidate["number"], **result})
