"""The command line of a folder of candidates: a process for each function, every result on the disk at once."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ....errors import RammerError, ToolError
from ....gpu_bundle.onsite.jobs import run_job
from .worker import work_on

LOAD_S, CANDIDATE_S = 60.0, 20.0
"""Time limits: of a function's start, and of each candidate beside it."""

FIELDS = ("function", "name", "rule", "choices", "num_rtasks", "code")
Say = Callable[[str], None]


def main(folder: Path, script: str, argv: Sequence[str], say: Say = print) -> int:
    """Check and time all candidates that `times.jsonl` does not have yet.

    Returns
    -------
    int
        0 if every candidate was measured or found wrong; 2 if nothing could run.
    """
    options = _parse(argv, folder)
    try:
        if options.worker:
            numbers = {int(n) for n in options.only.split(",")}
            emit = lambda event: print(json.dumps(event), flush=True)  # noqa: E731, T201
            work_on(folder, options.worker, numbers, options.libcuda, options.libnvrtc, emit)
        else:
            _time_all(folder, script, options, say)
    except RammerError as error:
        print(f"time_candidates: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _parse(argv: Sequence[str], folder: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="time_candidates.py", description=__doc__)
    parser.add_argument("-o", "--out", type=Path, default=folder / "times.jsonl", help="a line for each candidate")
    parser.add_argument("--libcuda", default="", help="path of the CUDA driver's library")
    parser.add_argument("--libnvrtc", default="", help="path of NVRTC, for a folder without compiled kernels")
    parser.add_argument("--patience", type=float, default=40.0, help="seconds without output before a kernel is killed")
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _time_all(folder: Path, script: str, options: argparse.Namespace, say: Say) -> None:
    about = json.loads((folder / "candidates.json").read_text(encoding="utf-8"))
    candidates = {c["number"]: c for c in about["candidates"]}
    done = _done(options.out)
    for key, function in about["functions"].items():
        left = [n for n, c in candidates.items() if c["function"] == key and n not in done]
        while left:
            measured = _run_until_failure(script, options, key, left, about, candidates)
            done |= measured
            left = [n for n in left if n not in measured]
        say(f"{len(done & candidates.keys())}/{len(candidates)} {function['name']}")
    say(f"wrote {options.out}; take it back: tvm-rammer tune MODEL --target {about['target']} --import times.jsonl")


def _done(path: Path) -> set[int]:
    """The candidates that the file has; a line that was cut off is none."""
    found = set()
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            found.add(json.loads(line)["number"])
        except ValueError:
            continue
    return found


def _run_until_failure(
    script: str,
    options: argparse.Namespace,
    key: str,
    left: Sequence[int],
    about: dict[str, Any],
    candidates: dict[int, dict[str, Any]],
) -> set[int]:
    """Run candidates in a process until one of them ends it; return those that are done, that one included."""
    measured: set[int] = set()
    begun, facts = -1, {}

    def on_event(event: dict[str, Any]) -> None:
        nonlocal begun
        if "gpu" in event:
            facts.update(event)
        elif "begin" in event:
            begun = event["begin"]
        else:
            candidate = {field: candidates[event["number"]][field] for field in FIELDS}
            _append(options.out, {**event, **candidate, **facts, "device": about["device"]})
            measured.add(event["number"])

    command = [sys.executable, script, "--worker", key, "--only", ",".join(map(str, left))]
    libraries = ["--libcuda", options.libcuda, "--libnvrtc", options.libnvrtc]
    problem = run_job([*command, *libraries], LOAD_S + CANDIDATE_S * len(left), options.patience, on_event)
    if problem and begun not in {-1} | measured:
        on_event({"number": begun, "error": problem})
    elif problem and not measured:
        raise ToolError(problem)
    return measured


def _append(path: Path, value: dict[str, Any]) -> None:
    """Append a line, and wait until it is on the disk; end a line that was cut off before."""
    line = json.dumps(value).encode() + b"\n"
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())
