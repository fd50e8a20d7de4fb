"""The command line: `tvm-rammer`, also `python -m tvm_rammer`."""

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from .errors import RammerError, ShapeError
from .tuning import command as tuning


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0, or 1 where the command failed; what was wrong is on standard error.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except RammerError as error:
        print(f"tvm-rammer: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tvm-rammer", description="Compile models to persistent rPrograms (Rammer).")
    commands = parser.add_subparsers(title="commands", required=True)

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("model", metavar="MODEL", help="an ONNX file")
    common.add_argument("--target", default="cpu", metavar="T", help="cpu, cuda:h200, cuda:h100, cuda:a100, cuda:v100")
    common.add_argument(
        "--shape", action="append", default=[], metavar="NAME=1,3,224,224", help="a static shape for an input"
    )
    common.add_argument(
        "--policy", default="auto", help="auto (default), wavefront, sequential, global, ios, list or search"
    )
    common.add_argument("--sync", default="auto", help="auto, or global: a barrier between waves")
    common.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")

    drawing = argparse.ArgumentParser(add_help=False)
    drawing.add_argument("--svg", metavar="FILE", help="also draw the schedule")
    drawing.add_argument("--trace", metavar="FILE", help="also write the schedule as a trace for ui.perfetto.dev")

    compiling = commands.add_parser("compile", parents=[common, drawing], help="write a library that plain TVM loads")
    compiling.add_argument("-o", "--output", required=True, metavar="OUT.so", help="where to write the library")
    compiling.add_argument("--cuda-source", metavar="FILE", help="also write the generated CUDA text")
    compiling.set_defaults(run=_compile)

    running = commands.add_parser("run", parents=[common], help="run a model once")
    running.add_argument(
        "--input", action="append", default=[], metavar="NAME=FILE.npy", help="default: random, seeded"
    )
    running.add_argument("--output", metavar="FILE.npz", help="where to write the results")
    running.set_defaults(run=_run)

    explaining = commands.add_parser(
        "explain", parents=[common, drawing], help="tell what each operator became, and why"
    )
    explaining.set_defaults(run=_explain)

    timing = commands.add_parser("bench", parents=[common], help="time a model against others")
    timing.add_argument("--against", default="stock", metavar="A,B", help="stock, stock-same-kernels, onnxruntime")
    timing.add_argument("--repeat", type=int, default=50, metavar="N", help="runs of each contender")
    timing.add_argument("--json", metavar="FILE", help="where to write all figures")
    timing.set_defaults(run=_bench)

    profiling = commands.add_parser(
        "profile", parents=[common, drawing], help="run a model, and tell what each kernel took in its rPrograms"
    )
    profiling.add_argument("--runs", type=int, default=30, metavar="N", help="how often to run it")
    profiling.set_defaults(run=_profile)

    fixing = commands.add_parser("fix", help="make constants of inputs that are always the same")
    fixing.add_argument("model", metavar="MODEL", help="an ONNX file")
    fixing.add_argument("values", nargs="+", metavar="NAME=NUMBER", help="an input and its value, or a .npy file of it")
    fixing.add_argument("-o", "--output", required=True, metavar="OUT.onnx", help="where to write the model")
    fixing.set_defaults(run=_fix)

    tuning.add_parser(commands, _shapes)
    return parser


def _shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        try:
            shapes[name] = tuple(int(e) for e in extents.split(",")) if extents else ()
        except ValueError:
            name = ""
        if not name:
            raise ShapeError(f"--shape {text!r} is not of the form NAME=1,3,224,224")
    return shapes


def _how(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keyword arguments that `compile`, `bench` and `profile` share."""
    return {
        "target": arguments.target,
        "shapes": _shapes(arguments.shape),
        "policy": arguments.policy,
        "sync": arguments.sync,
        "tuning_logs": arguments.logs,
    }


def _compiled(arguments: argparse.Namespace) -> Any:
    from .driver import compile

    _progress(f"compiling {arguments.model} for {arguments.target}")
    return compile(arguments.model, **_how(arguments))


def _draw(arguments: argparse.Namespace, module: Any) -> None:
    """Write the pictures of a compiled module, or of a profile, that were asked for."""
    if arguments.svg:
        _write(arguments.svg, module.schedule_svg())
    if arguments.trace:
        _write(arguments.trace, module.trace())


def _compile(arguments: argparse.Namespace) -> None:
    module = _compiled(arguments)
    _draw(arguments, module)
    if arguments.cuda_source:
        _write(arguments.cuda_source, module.cuda_source())
    print(f"wrote {module.export_library(arguments.output)}")


def _run(arguments: argparse.Namespace) -> None:
    import numpy as np

    from .bench import random_inputs

    module = _compiled(arguments)
    values = dict(zip((s.name for s in module.inputs), random_inputs(module.inputs, 0), strict=True))
    for text in arguments.input:
        name, _, file = text.partition("=")
        try:
            values[name] = np.load(file, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise RammerError(f"--input {text!r}: {error}; give NAME=FILE.npy") from error
    started = time.perf_counter()
    result = module(**values)
    print(f"ran in {(time.perf_counter() - started) * 1e3:.2f} ms")
    outputs = result if isinstance(result, tuple) else (result,)
    for i, output in enumerate(outputs):
        print(f"output {i}: {output.dtype}{list(output.shape)}, {_range(output)}")
    if arguments.output:
        np.savez(arguments.output, *outputs)


def _range(array: Any) -> str:
    return f"{array.min()} to {array.max()}" if array.size else "empty"


def _explain(arguments: argparse.Namespace) -> None:
    module = _compiled(arguments)
    _draw(arguments, module)
    print(module.explain())


def _profile(arguments: argparse.Namespace) -> None:
    from .profiler import profile

    _progress(f"compiling and running {arguments.model}")
    found = profile(arguments.model, runs=arguments.runs, **_how(arguments))
    _draw(arguments, found)
    print(found.text())


def _fix(arguments: argparse.Namespace) -> None:
    import numpy as np
    import onnx

    from .relay_passes.fix_inputs import fix_inputs

    values = {}
    for text in arguments.values:
        name, _, value = text.rpartition("=")
        try:
            if not name:
                raise ValueError("no input is named")
            values[name] = np.load(value, allow_pickle=False) if value.endswith(".npy") else json.loads(value)
        except (OSError, ValueError) as error:
            raise RammerError(f"{text!r}: {error}; give NAME=NUMBER or NAME=FILE.npy") from error
    proto = fix_inputs(arguments.model, values)
    try:
        onnx.save(proto, arguments.output)
    except (OSError, ValueError) as error:
        raise RammerError(f"cannot write {arguments.output!r}: {error}") from error
    print(f"wrote {arguments.output}; its inputs are {', '.join(value.name for value in proto.graph.input) or 'none'}")


def _bench(arguments: argparse.Namespace) -> None:
    from .bench import bench

    found = bench(
        arguments.model,
        against=[name for name in arguments.against.split(",") if name],
        repeat=arguments.repeat,
        progress=_progress,
        **_how(arguments),
    )
    if arguments.json:
        _write(arguments.json, json.dumps(found, indent=2) + "\n")
    print(f"{'contender':<20}{'median ms':>12}{'p90 ms':>12}{'runs':>6}{'rel. error':>12}{'ratio':>8}")
    for name, r in found["results"].items():
        ratio = found["ratios"].get(name, 1.0)
        print(f"{name:<20}{r['median_ms']:>12.3f}{r['p90_ms']:>12.3f}{r['n']:>6}{r['max_rel_err']:>12.1e}{ratio:>8.2f}")
    for name, reason in found["missing"].items():
        print(f"{name:<20} missing: {reason}")
    if found["workers"] < found["threads"]:
        print(f"TVM's pool has {found['workers']} workers for {found['threads']} vEUs: rPrograms ran on one thread")


def _write(path: str, text: str) -> None:
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RammerError(f"cannot write {path!r}: {error.strerror}; give a file in a folder that exists") from error


def _progress(message: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)
    else:
        print(message, file=sys.stderr, flush=True)
