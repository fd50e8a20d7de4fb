"""PyTorch's time for a model: its operators, with cuDNN's and cuBLAS's kernels, eager, in a CUDA graph and compiled."""

import importlib
import json
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ...errors import ToolError
from .torch_operators import runner_of

FILE = "torch.json"
"""In the folder of a model: its nodes, and the files of its weights and inputs (`gpu_bundle.models.peers`)."""

PEER = "torch"
COMPILED, CAPTURED = "+compile", "+graph"


class TorchRunner:
    """A contender: PyTorch launches a model one way."""

    def __init__(self, torch: Any, step: Callable[[], Sequence[Any]]) -> None:
        self._torch, self._step = torch, step
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch_us(self, runs: int) -> float:
        """As `times.measure.Contender`."""
        with _settings(self._torch):
            self._start.record()
            for _ in range(runs):
                self._step()
            self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end)) * 1e3

    def latencies_us(self, runs: int) -> list[float]:
        """As `times.measure.Contender`."""
        times = []
        with _settings(self._torch):
            for _ in range(runs):
                started = time.perf_counter()
                self._step()
                self._torch.cuda.synchronize()
                times.append((time.perf_counter() - started) * 1e6)
        return times

    def results(self) -> list["array[float]"]:
        """The outputs of a run."""
        with _settings(self._torch):
            return [array("f", output.flatten().tolist()) for output in self._step()]


def torch_runners(folder: Path, model: Path) -> Iterator[tuple[str, Callable[[], TorchRunner]]]:
    """The ways in which PyTorch can run a model, by the contender's name, each made when it is called.

    Parameters
    ----------
    folder, model : pathlib.Path
        The bundle, and the folder of a model in it.

    Raises
    ------
    ToolError
        There is no PyTorch with a GPU here, or the model has an operator that is not among `torch_operators.OPERATORS`.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ToolError(f"PyTorch cannot be loaded: {error}; install it, or leave out --torch") from error
    if not torch.cuda.is_available():
        raise ToolError("this PyTorch finds no GPU; install one that is built for CUDA, or leave out --torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    graph = json.loads((model / FILE).read_text(encoding="utf-8"))
    tensors = {name: _tensor(torch, folder, facts) for name, facts in {**graph["weights"], **graph["inputs"]}.items()}
    compute = runner_of(torch, graph["nodes"], tensors, graph["outputs"])

    def run() -> Sequence[Any]:
        return compute({})

    yield PEER, lambda: TorchRunner(torch, _without_gradients(torch, run))
    yield PEER + CAPTURED, lambda: TorchRunner(torch, _captured(torch, _without_gradients(torch, run)))
    yield PEER + COMPILED, lambda: TorchRunner(torch, _captured(torch, _compiled(torch, run)))


def _settings(torch: Any) -> AbstractContextManager[None]:
    """What a step runs under: single precision as it is, and the fastest of cuDNN's algorithms."""
    settings: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False)
    return settings


def _without_gradients(torch: Any, run: Callable[[], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
    def step() -> Sequence[Any]:
        with torch.inference_mode():
            return run()

    return step


def _compiled(torch: Any, run: Callable[[], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
    compiled = torch.compile(run)

    def step() -> Sequence[Any]:
        with torch.no_grad():
            made: Sequence[Any] = compiled()
            return made

    return step


def _captured(torch: Any, step: Callable[[], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
    """Replay a CUDA graph of a step."""
    side = torch.cuda.Stream()
    with _settings(torch), torch.cuda.stream(side):  # what a first run chooses or compiles must not be captured
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with _settings(torch), torch.cuda.graph(graph):
        outputs = step()

    def replay() -> Sequence[Any]:
        graph.replay()
        return outputs

    return replay


def _tensor(torch: Any, folder: Path, facts: dict[str, Any]) -> Any:
    if not facts["file"]:
        return facts["values"]
    data = bytearray((folder / facts["file"]).read_bytes())
    return torch.frombuffer(data, dtype=torch.float32).reshape(facts["shape"]).cuda()
