"""The command line of the benchmark: each model in a process of its own, results on the screen and on disk at once."""

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ...errors import RammerError, ToolError
from .jobs import run_job
from .report import Findings, model_table
from .times.prices import FOLDER, measured_spec
from .worker import GRAPHS, price, work_on

DEVICE_FILE = "device.json"
"""Among the results: the figures of this GPU, for `tvm_rammer.compile(..., target="device.json")`."""

PRICES_S = 120.0
"""Time for measuring prices, which takes less than a second."""

LOAD_S = 45.0
"""Time for loading and checking a model, beside the time for timing it."""

_SMI = "clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw"
Say = Callable[[str], None]


def main(folder: Path, script: str, argv: Sequence[str], say: Say = print) -> int:
    """Run the benchmark.

    Parameters
    ----------
    folder : pathlib.Path
        The bundle, unless the arguments name another.
    script : str
        What to start for a worker: the path of the script that calls this.
    argv : sequence of str
        Arguments of the command line.
    say : callable
        Prints a line.

    Returns
    -------
    int
        0 if every variant of every model ran and was right; 1 if not; 2 if nothing could run.
    """
    options = _parse(argv, folder)
    try:
        if options.prices:
            price(options.bundle, options.libcuda, _emit)
            return 0
        if options.worker:
            skip = [s for s in options.skip.split(",") if s]
            work_on(
                options.bundle, options.worker, options.seconds, options.rounds, skip, options.libcuda, _emit,
                torch=options.torch,
            )  # fmt: skip
            return 0
        return _bench(options, script, argv, say)
    except RammerError as error:
        print(f"gpu_bench: {error}", file=sys.stderr)  # noqa: T201
        return 2


def _emit(event: dict[str, Any]) -> None:
    """Tell the process that started this one."""
    print(json.dumps(event), flush=True)  # noqa: T201


def _parse(argv: Sequence[str], folder: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpu_bench", description="Check and time the bundle's models on this GPU.")
    parser.add_argument("--bundle", type=Path, default=folder, help="the bundle (default: where this script lies)")
    parser.add_argument("--models", default="", help="models, separated by commas (default: all)")
    parser.add_argument("--minutes", type=float, default=7.0, help="time for all of it (default: 7)")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of measurement at most (default: 200)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for results.json and results.md")
    parser.add_argument("--torch", action="store_true", help="run the models with this machine's PyTorch, too")
    parser.add_argument("--libcuda", default="", help="path of the CUDA driver's library (default: look for it)")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds without output before a worker is killed")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    parser.add_argument("--prices", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=30.0, help=argparse.SUPPRESS)
    parser.add_argument("--skip", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _bench(options: argparse.Namespace, script: str, argv: Sequence[str], say: Say) -> int:
    began = time.monotonic()
    about = verify(options.bundle)
    names = [n for n in options.models.split(",") if n] or list(about["models"])
    unknown = [n for n in names if n not in about["models"]]
    if unknown:
        raise ToolError(f"the bundle has no model {', '.join(unknown)}; it has {', '.join(about['models'])}")
    command = shlex.join([Path(sys.executable).name, Path(script).name, *argv])
    findings = Findings({"command": command, "bundle": about, "python": sys.version.split()[0], "clocks": {}})
    findings.about["clocks"]["before"] = _clocks()
    say(f"bundle of {', '.join(names)}; clocks before: {findings.about['clocks']['before']}")
    if (options.bundle / FOLDER).is_dir():
        _prices(options, script, about["device"], findings, say)
    for at, name in enumerate(names):
        left = options.minutes * 60 - (time.monotonic() - began)
        share = left / (len(names) - at)
        findings.start(name, about["models"][name])
        say(f"\n{name}: {share:.0f} s at most")
        _model(options, script, name, share, findings, say)
        findings.about["clocks"]["after"] = _clocks()
        findings.write(options.out)
        say("\n".join(model_table(findings.models[name])))
        if not findings.device:
            raise ToolError(findings.models[name]["failures"][-1])
    say(f"\nwrote {options.out / 'results.json'} and {options.out / 'results.md'}")
    return int("failed" in findings.prices or not all(_succeeded(found) for found in findings.models.values()))


def _prices(options: argparse.Namespace, script: str, planned: dict[str, Any], findings: Findings, say: Say) -> None:
    """Measure the prices by which plans are made, and write the device that has them."""

    def on_event(event: dict[str, Any]) -> None:
        findings.prices |= event["prices"]
        spec = measured_spec(planned, event["device"], event["prices"])
        findings.write(options.out)
        (options.out / DEVICE_FILE).write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")

    command = [
        sys.executable, script, "--prices", "--bundle", str(options.bundle), "--libcuda", options.libcuda
    ]  # fmt: skip
    try:
        problem = run_job(command, PRICES_S, options.patience, on_event)
    except ToolError as error:
        problem = str(error)
    if problem:
        findings.prices["failed"] = problem
    say(f"prices: {json.dumps(findings.prices)}")


def _succeeded(found: dict[str, Any]) -> bool:
    contenders = found["contenders"].values()
    checks = [c["status"] for c in contenders] + [c["after"]["status"] for c in contenders if "after" in c]
    return bool(checks) and not found["failures"] and set(checks) == {"ok"}


def _model(options: argparse.Namespace, script: str, name: str, share: float, findings: Findings, say: Say) -> None:
    """Run one model; start again without the contender during which its process ended."""
    end = time.monotonic() + share
    skip: list[str] = []
    current = ""

    def on_event(event: dict[str, Any]) -> None:
        nonlocal current
        if event["event"] == "begin":
            current = event["contender"]
        if event["event"] == "timed":
            current = ""
        findings.add(name, event)
        findings.write(options.out)
        text = {key: value for key, value in event.items() if key != "results"}
        say(f"  {time.strftime('%H:%M:%S')} {json.dumps(text)}")

    while True:
        left = end - time.monotonic()
        command = [
            sys.executable, script, "--worker", name, "--bundle", str(options.bundle), "--libcuda", options.libcuda,
            "--seconds", f"{max(2.0, min(left / 2, left - LOAD_S)):.1f}", "--rounds", str(options.rounds),
            "--skip", ",".join(skip), *["--torch"] * options.torch,
        ]  # fmt: skip
        problem = run_job(command, max(left, 10.0), options.patience, on_event)
        if not problem:
            return
        findings.add(name, {"event": "failed", "contender": current or name, "error": problem})
        findings.write(options.out)
        say(f"  {current or name}: {problem}")
        if not current or current in skip or end - time.monotonic() < min(20.0, share / 4):
            return
        # A graph holds the kernels of the launches: what hangs without it hangs in it.
        skip += [current] if "+" in current else [current, *(f"{current}{way}" for way in GRAPHS)]
        current = ""


def verify(bundle: Path) -> dict[str, Any]:
    """Make sure that every file of the bundle is there and intact; return what bundle.json says.

    Raises
    ------
    ToolError
        A file is missing or differs.
    """
    manifest = bundle / "manifest.json"
    if not manifest.is_file():
        raise ToolError(f"{bundle} is no bundle; make one with scripts/gpu_bundle, and run the gpu_bench inside of it")
    for path, expected in json.loads(manifest.read_text(encoding="utf-8")).items():
        file = bundle / path
        if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != expected["sha256"]:
            raise ToolError(f"{file} is missing or not as it was packed; copy the bundle again")
    about: dict[str, Any] = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    return about


def _clocks() -> str:
    """What nvidia-smi says; empty where it is not there."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu=name,driver_version,{_SMI}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
