"""A recurrent model called step by step: microseconds a step here and in ONNX Runtime, with bound arrays and without.

The engines take turns in one process, on one thread each; what is printed is the median of the quieter half of the
rounds, of each round the mean of its steps.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

import tvm_rammer
from tvm_rammer.zoo.onnx_lstm import onnx_lstm
from tvm_rammer.zoo.open_shapes.speech import speech
from tvm_rammer.zoo.streaming.voice_activity import voice_activity

Step = Callable[[], object]

STATES = {"h": "h_next", "c": "c_next"}
SIZES = {"small": {"samples": 64, "window": 32, "hidden": 16}, "of a phone": {}, "large": {"hidden": 512}}


def ours(model: onnx.ModelProto, x: np.ndarray) -> Mapping[str, Step]:
    """A call with arrays, and a binding, with states passed on."""
    module = tvm_rammer.compile(model, threads=1)
    states = [np.zeros(spec.shape, spec.dtype) for spec in module.inputs[1:]]
    binding = module.bind({"x": x}, states=STATES)

    def call() -> None:
        _, *states[:] = module(x, *states)

    return {"a call": call, "bind": binding}


def onnxruntime(model: onnx.ModelProto, x: np.ndarray) -> Mapping[str, Step]:
    """A call with arrays, and an IO binding, with states passed on."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    given = {spec.name: np.zeros(spec.shape, "float32") for spec in session.get_inputs()} | {"x": x}
    names = [spec.name for spec in session.get_outputs()]
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in given.items()}
    voice = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 1), "float32"))
    others = {name: ort.OrtValue.ortvalue_from_numpy(given[name].copy()) for name in STATES}
    turns = [bound(session, values, others, voice), bound(session, values | others, values, voice)]

    def call() -> None:
        _, given["h"], given["c"] = session.run(names, given)

    def with_binding() -> None:
        session.run_with_iobinding(turns[0])
        turns.reverse()

    return {"ONNX Runtime, run": call, "ONNX Runtime, io_binding": with_binding}


def bound(session: Any, read: Mapping[str, Any], written: Mapping[str, Any], voice: Any) -> Any:
    """An IO binding from some values to others."""
    binding = session.io_binding()
    for name in ("x", *STATES):
        binding.bind_ortvalue_input(name, read[name])
    binding.bind_ortvalue_output("voice", voice)
    for name, output in STATES.items():
        binding.bind_ortvalue_output(output, written[name])
    return binding


def microseconds(steps: Mapping[str, Step], seconds: float, rounds: int) -> dict[str, float]:
    """The time of a step of each, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(20):
            step()
    for _ in range(rounds):
        for name, step in steps.items():
            count, begin = 0, time.perf_counter()
            while (passed := time.perf_counter() - begin) < seconds:
                for _ in range(10):
                    step()
                count += 10
            times[name].append(passed / count * 1e6)
    return {name: statistics.median(sorted(found)[: -(-rounds // 2)]) for name, found in times.items()}


def ways_to_call() -> Mapping[str, Step]:
    """A step of a small LSTM, which takes less than a microsecond, called in all ways."""
    model, x, frame = onnx_lstm(1, 1, 32), np.zeros((1, 1, 32), "float32"), np.zeros((1, 1, 4), "float32")
    module, session = tvm_rammer.compile(model, threads=1), tvm_rammer.InferenceSession(model)
    opened = onnx_lstm(1, 1, 32)
    opened.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "batch"
    symbolic = tvm_rammer.compile(opened, threads=1)
    lengths = tvm_rammer.compile(speech(4, 4, 4, 1), threads=1, shapes={"time": (1, 16)})
    return {
        "module(x)": lambda: module(x),
        "module(x=x)": lambda: module(x=x),
        "InferenceSession.run": lambda: session.run(None, {"x": x}),
        "an open batch": lambda: symbolic(x),
        "any length": lambda: lengths(frame),
        "bind": module.bind(),
    }


def processor_us(step: Step, calls: int = 2000, rounds: int = 15) -> float:
    """Processor time of a step in its thread, the least of some rounds."""
    times = []
    for _ in range(rounds):
        begin = time.thread_time()
        for _ in range(calls):
            step()
        times.append((time.thread_time() - begin) / calls * 1e6)
    return min(times)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each measurement (default: 0.1)")
    parser.add_argument("--rounds", type=int, default=12, help="measurements of each (default: 12)")
    parser.add_argument("--calls", action="store_true", help="processor time of all ways to call a small model instead")
    args = parser.parse_args()
    if args.calls:
        print("| call | processor us |\n|---|---|")
        for name, step in ways_to_call().items():
            print(f"| {name} | {processor_us(step):.1f} |", flush=True)
        return 0
    for number, (name, sizes) in enumerate(SIZES.items()):
        model = voice_activity(**sizes)
        x = np.random.default_rng(0).standard_normal((1, sizes.get("samples", 512))).astype("float32")
        found = microseconds({**ours(model, x), **onnxruntime(model, x)}, args.seconds, args.rounds)
        if number == 0:
            print(f"| microseconds a step | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
        print(f"| {name} | {' | '.join(f'{us:.1f}' for us in found.values())} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
