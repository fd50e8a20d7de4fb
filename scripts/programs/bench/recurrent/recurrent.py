"""Recurrent layers of many steps against ONNX Runtime and OpenVINO, each alone in a process of its own, in turns.

The bound is what this machine's caches and units allow: the products ahead of the loops at peak, and for each step the
weights of the busiest vEU from its own cache, and one signal.
"""

import argparse
import math
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial

import onnx

import tvm_rammer
from tvm_rammer.benchmark.neighbours import TOLERANCE, beside_neighbours, installed
from tvm_rammer.device import DeviceSpec
from tvm_rammer.ir import RProgram, Run
from tvm_rammer.zoo.onnx_lstm import onnx_lstm


def of_bytes(layers: int, steps: int, hidden: int) -> onnx.ModelProto:
    """LSTM layers as ONNX Runtime's quantiser writes them: weights are bytes, states are quantised in each step."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        quantize_dynamic(onnx_lstm(layers, steps, hidden), path, weight_type=QuantType.QInt8)
        return onnx.load(path)


MODELS: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "LSTM 2 x 50 x 32": partial(onnx_lstm, 2, 50, 32),
    "LSTM 2 x 400 x 128": partial(onnx_lstm, 2, 400, 128),
    "LSTM 10 x 100 x 256": partial(onnx_lstm, 10, 100, 256),
    "LSTM 1 x 1,000 x 256": partial(onnx_lstm, 1, 1000, 256),
    "LSTM 2 x 4,000 x 128": partial(onnx_lstm, 2, 4000, 128),
    "LSTM both ways 1 x 200 x 256": partial(onnx_lstm, 1, 200, 256, bidirectional=True),
    "GRU 2 x 200 x 256": partial(onnx_lstm, 2, 200, 256, kind="GRU"),
    "RNN 2 x 200 x 256": partial(onnx_lstm, 2, 200, 256, kind="RNN"),
    "LSTM of bytes 2 x 200 x 64": partial(of_bytes, 2, 200, 64),
    "LSTM of bytes 2 x 200 x 256": partial(of_bytes, 2, 200, 256),
    "LSTM of bytes 1 x 100 x 512": partial(of_bytes, 1, 100, 512),
}
PEERS = ("onnxruntime", "openvino")
STEP_OF_BYTES = 1e-2
"""Largest difference of results of quantised layers over the largest magnitude."""


def step_us(program: RProgram, device: DeviceSpec) -> float:
    """The least time of a step: its weights at the bandwidth of a unit's own cache, and a signal between two vEUs."""
    busiest = 0.0
    for lane in program.lanes:
        nbytes = 0.0
        for run in (i for i in lane if isinstance(i, Run)):
            op, rtasks = program.graph.operators[run.operator], program.kernels[run.operator].num_rtasks
            constants = [program.graph.buffers[b] for b in op.inputs if program.graph.buffers[b].kind == "constant"]
            nbytes += sum(b.nbytes for b in constants) * run.count / rtasks
        busiest = max(busiest, nbytes)
    signal_us = device.signal_us if len(program.lanes) > 1 else 0.0
    return busiest / (device.unit_gbps * 1e3) + signal_us


def bound_ms(model: onnx.ModelProto, module: tvm_rammer.RammerModule) -> float:
    """The least time of a model: its loops, and the products ahead of them at peak."""
    device = module.compilation.device
    loops_us = sum(p.steps * step_us(p, device) for p in module.compilation.programs if p.steps > 1)
    dims = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    weights = sum(math.prod(t.dims) for t in model.graph.initializer if t.name.startswith("weights"))
    flops_per_us: float = device.units * device.clock_ghz * device.flops_per_cycle * 1e3
    products_us: float = 2.0 * dims[0] * dims[1] * weights / flops_per_us
    return (loops_us + products_us) / 1e3


def row(name: str, engines: list[str], seconds: float, rounds: int) -> str:
    """A line of the table."""
    model = MODELS[name]()
    quantised = any(node.domain == "com.microsoft" for node in model.graph.node)
    if quantised:
        engines = [engine for engine in engines if engine != "openvino"]  # it does not read them
    started = time.perf_counter()
    module = tvm_rammer.compile(model, cache=False)
    compiled_s = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        onnx.save(model, path)
        threads = module.compilation.device.units
        # A state between two bytes becomes one or the other, by its last bit.
        found = beside_neighbours(
            path, engines, [0], threads=threads, seconds=seconds, rounds=rounds,
            tolerance=STEP_OF_BYTES if quantised else TOLERANCE,
        )[0]  # fmt: skip
    ours, bound = found["rammer"].p50, bound_ms(model, module)
    peers = [f"{found[peer].p50:.3f} ({found[peer].p50 / ours:.2f})" if peer in found else "-" for peer in PEERS]
    return f"| {name} | {compiled_s:.1f} | {ours:.3f} | {' | '.join(peers)} | {bound:.3f} ({ours / bound:.1f}) |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(n.replace(",", "") for n in MODELS), help="names, commas between")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement (default: 1)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each engine, in turns (default: 5)")
    args = parser.parse_args()
    by_name = {name.replace(",", ""): name for name in MODELS}
    wanted = [name.replace(",", "") for name in args.models.split(",")]
    if unknown := [name for name in wanted if name not in by_name]:
        parser.error(f"unknown models {', '.join(unknown)}; choose from {', '.join(by_name)}")
    engines = installed(["rammer", *PEERS])
    print(
        "| layers x steps x units | compiled in s | ms | ONNX Runtime ms (times ours) | OpenVINO ms (times ours) |"
        " bound ms (ours / bound) |"
    )
    print("|---|---|---|---|---|---|")
    for name in wanted:
        print(row(by_name[name], engines, args.seconds, args.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
