"""PyTorch's time for a model: its operators, with cuDNN's and cuBLAS's kernels, eager, in a CUDA graph and compiled."""

import importlib
import json
import operator
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ...errors import ToolError

FILE = "torch.json"
"""In the folder of a model: its nodes, and the files of its weights and inputs (`gpu_bundle.models.peers`)."""

PEER = "torch"
COMPILED, CAPTURED = "+compile", "+graph"
_GATES = (0, 2, 3, 1)
"""Of cuDNN's gates i, f, c, o among ONNX's i, o, f, c."""

_Step = Callable[[dict[str, Any]], None]


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
        There is no PyTorch with a GPU here, or the model has an operator that is not among `_OPERATORS`.
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
    run = _runner_of(torch, graph, tensors)
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


def _runner_of(torch: Any, graph: dict[str, Any], tensors: dict[str, Any]) -> Callable[[], Sequence[Any]]:
    steps = [_step(torch, node, tensors) for node in _with_stacked_layers(graph["nodes"])]
    inputs, names = dict(tensors), list(graph["outputs"])

    def run() -> Sequence[Any]:
        values = dict(inputs)
        for step in steps:
            step(values)
        return [values[name] for name in names]

    return run


def _step(torch: Any, node: dict[str, Any], tensors: dict[str, Any]) -> _Step:
    """One operator as a function of the values by name."""
    if node["op"] == "LSTM":
        return _lstm_step(torch, node, tensors)
    if node["op"] not in _OPERATORS:
        raise ToolError(f"the comparison with PyTorch knows no operator {node['op']}; leave out --torch for this model")
    compute, given, made = _OPERATORS[node["op"]], node["inputs"], node["outputs"]
    attributes = {**node["attributes"], "outputs": len(made)}

    def step(values: dict[str, Any]) -> None:
        result = compute(torch, attributes, *(values[name] if name else None for name in given))
        values.update(zip(made, result if isinstance(result, tuple) else (result,), strict=False))

    return step


def _pads(attributes: dict[str, Any]) -> list[int]:
    pads: list[int] = attributes.get("pads", [0, 0, 0, 0])
    if pads[: len(pads) // 2] != pads[len(pads) // 2 :]:
        raise ToolError(f"the comparison with PyTorch knows no padding {pads}; leave out --torch for this model")
    return pads[: len(pads) // 2]


def _conv(torch: Any, a: dict[str, Any], x: Any, w: Any, bias: Any = None) -> Any:
    strides = a.get("strides", [1, 1])
    return torch.nn.functional.conv2d(x, w, bias, strides, _pads(a), a.get("dilations", [1, 1]), a.get("group", 1))


def _max_pool(torch: Any, a: dict[str, Any], x: Any) -> Any:
    return torch.nn.functional.max_pool2d(x, a["kernel_shape"], a.get("strides", [1, 1]), _pads(a))


def _average_pool(torch: Any, a: dict[str, Any], x: Any) -> Any:
    counted = bool(a.get("count_include_pad", 0))
    return torch.nn.functional.avg_pool2d(
        x, a["kernel_shape"], a.get("strides", [1, 1]), _pads(a), count_include_pad=counted
    )


def _slice(torch: Any, a: dict[str, Any], x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = torch.slice_copy(x, axis, start, min(end, x.shape[axis]), step)
    return x


_OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda torch, a, x, y: operator.add(x, y),
    "Mul": lambda torch, a, x, y: operator.mul(x, y),
    "MatMul": lambda torch, a, x, y: torch.matmul(x, y),
    "Gemm": lambda torch, a, x, w, b: torch.addmm(b, x, w.t() if a.get("transB") else w),
    "Sigmoid": lambda torch, a, x: torch.sigmoid(x),
    "Tanh": lambda torch, a, x: torch.tanh(x),
    "Relu": lambda torch, a, x: torch.relu(x),
    "Dropout": lambda torch, a, x: x,
    "Split": lambda torch, a, x: torch.chunk(x, a["outputs"], a["axis"]),
    "Concat": lambda torch, a, *parts: torch.cat(parts, a["axis"]),
    "Squeeze": lambda torch, a, x, axes: torch.squeeze(x, axes),
    "Flatten": lambda torch, a, x: torch.flatten(x, a.get("axis", 1)),
    "GlobalAveragePool": lambda torch, a, x: x.mean((2, 3), keepdim=True),
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "Slice": _slice,
}


def _with_stacked_layers(nodes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Make LSTM layers with a Squeeze between them one call of cuDNN: `layers` has the inputs of each."""
    stacked: list[dict[str, Any]] = []
    for node in nodes:
        below, squeeze = stacked[-2:] if len(stacked) > 1 else ({}, {})
        above = node["op"] == below.get("op") == "LSTM" and squeeze.get("op") == "Squeeze"
        if above and node["inputs"][0] == squeeze["outputs"][0]:
            stacked[-2:] = [{**below, "outputs": node["outputs"], "layers": [*below["layers"], node["inputs"]]}]
        else:
            stacked.append({**node, "layers": [node["inputs"]]})
    return stacked


def _lstm_step(torch: Any, node: dict[str, Any], tensors: dict[str, Any]) -> _Step:
    hidden, layers = node["attributes"]["hidden_size"], node["layers"]
    lstm = torch.nn.LSTM(tensors[layers[0][1]].shape[2], hidden, num_layers=len(layers)).cuda()
    for layer, (_, w, r, bias) in enumerate(layers):
        sums = tensors[bias][0].reshape(2, 4, hidden)
        parts = {
            "weight_ih": tensors[w][0].reshape(4, hidden, -1),
            "weight_hh": tensors[r][0].reshape(4, hidden, -1),
            "bias_ih": sums[0],
            "bias_hh": sums[1],
        }
        for name, gates in parts.items():
            wanted = getattr(lstm, f"{name}_l{layer}")
            wanted.data.copy_(gates[list(_GATES)].reshape(wanted.shape))
    lstm.flatten_parameters()
    given, made = layers[0][0], node["outputs"][0]

    def step(values: dict[str, Any]) -> None:
        values[made] = lstm(values[given])[0].unsqueeze(1)

    return step
