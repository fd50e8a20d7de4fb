"""The main job on a real model: see `scripts/demo`."""

import argparse
import pathlib
import sys
import tempfile
import time
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

import tvm_rammer
from tvm_rammer.benchmark.bench import bench
from tvm_rammer.cli.progress import end_progress, progress
from tvm_rammer.zoo.light import NAMES, expected_output_path, light, light_path


def main() -> int:
    """Compile, check, measure, draw; 1 where the output is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="squeezenet", choices=NAMES, help="a light model of the onnx package")
    parser.add_argument("--out", default="out", type=pathlib.Path, help="folder for the picture")
    parser.add_argument("--repeat", default=20, type=int, help="runs of each contender")
    arguments = parser.parse_args()
    path = light_path(arguments.model)

    say(f"1/4  compiling {path.name} for the CPU vDevice")
    started = time.perf_counter()
    module = tvm_rammer.compile(path, target="cpu", cache=False)
    say(f"     done in {time.perf_counter() - started:.1f} s")

    say("2/4  running it on the model's test input, and comparing with the expected output")
    expected = read_tensor(expected_output_path(arguments.model))
    error = check(module, expected)
    if not error <= 1e-4:
        say(f"     WRONG: relative error {error:.1e}, more than 1e-4")
        return 1

    say("3/4  timing it, interleaved with stock TVM and with the same kernels launched one by one")
    say("     (with random weights: the model's own are all equal, and would hide a wrong result)")
    with tempfile.TemporaryDirectory() as folder:
        weighted = pathlib.Path(folder, path.name)
        onnx.save(light(arguments.model), weighted)
        found = bench(weighted, against=["stock-same-kernels", "stock"], repeat=arguments.repeat, progress=progress)
    end_progress()

    arguments.out.mkdir(parents=True, exist_ok=True)
    picture = arguments.out / f"{arguments.model}.svg"
    picture.write_text(module.schedule_svg(), encoding="utf-8")
    say(f"4/4  drew the schedule: {picture}")
    print_report(arguments.model, module, found, error)
    return 0


def check(module: tvm_rammer.RammerModule, expected: np.ndarray) -> float:
    """Run the model on ones, as the onnx package made its expected outputs; return the relative error."""
    (spec,) = module.inputs
    got = module(test_input(spec.shape, spec.dtype))
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def test_input(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The input with which the onnx package made the expected outputs of its light models."""
    return np.ones(shape, dtype)


def read_tensor(path: pathlib.Path) -> np.ndarray:
    """Read a tensor from a protobuf file."""
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def print_report(name: str, module: tvm_rammer.RammerModule, found: dict[str, Any], error: float) -> None:
    """Print the figures that matter."""
    facts, results = module.report(), found["results"]
    worst = max(r["max_rel_err"] for r in results.values())
    print(f"""
{name} on {facts["device"]} ({facts["arch"]}, {facts["veus"]} vEUs, {found["workers"]} workers)
  operators               {facts["operators"]:>8}
  rOperators              {facts["roperators"]:>8}
  rKernels considered     {facts["rkernels_considered"]:>8}
  waves                   {facts["waves"]:>8}
  rProgram launches       {facts["rprogram_launches"]:>8}    stock launches {facts["stock_launches"]}
  waits                   {facts["waits"]:>8}
  planned makespan        {facts["makespan_us"] / 1e3:>8.2f} ms
  error on the test input {error:>8.0e}  of the largest output; with random weights against stock TVM {worst:.0e}
  rProgram                {results["rammer"]["median_ms"]:>8.2f} ms median""")
    for contender in ("stock-same-kernels", "stock"):
        ratio = found["ratios"][contender]
        print(f"  {contender:<22}{results[contender]['median_ms']:>10.2f} ms median, {ratio:.2f} times ours")


def say(message: str) -> None:
    """Show progress."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
