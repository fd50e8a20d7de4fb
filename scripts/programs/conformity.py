"""Run ONNX's own backend tests, count what is right, and write or check docs/conformity.md."""

import argparse
import os
import pathlib
import re
import sys
import time
from collections import Counter

os.environ["RAMMER_CACHE_BYTES"] = "0"  # each model is compiled once
os.environ.setdefault("TVM_NUM_THREADS", "1")  # a child for each core: with more threads they would wait for cores

import tvm_rammer.onnx_backend  # TVM, once for all children
from tvm_rammer.onnx_backend.conformity.cases import OUTCOMES, REFUSED, RIGHT, Verdict, load_cases
from tvm_rammer.onnx_backend.conformity.report import committed, markdown
from tvm_rammer.onnx_backend.conformity.workers import run_cases

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "conformity.md"
assert tvm_rammer.onnx_backend
_done: list[str] = []


def main() -> int:
    """Run the cases; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page says better")
    parser.add_argument(
        "--only", type=_pattern, default="", metavar="PATTERN", help="of the cases' names; writes nothing"
    )
    parser.add_argument(
        "--hostile", action="store_true", help="with values that nobody expects, which no process must die of"
    )
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    names = [name for name in load_cases() if re.search(args.only, name)]
    if not names:
        parser.error(f"no case's name matches {args.only!r}")
    if args.processes < 1:
        parser.error(f"{args.processes} processes; at least one is needed")
    started = time.monotonic()
    verdicts = run_cases(names, args.processes, _tell, args.hostile)
    counts = Counter(verdict.outcome for verdict in verdicts)
    print(", ".join(f"{counts[o]} {o}" for o in OUTCOMES), f"in {time.monotonic() - started:.0f} s")
    if args.hostile:
        return int(any(counts[outcome] for outcome in OUTCOMES if outcome not in (RIGHT, REFUSED)))
    if not args.only and not args.check:
        PAGE.write_text(markdown(verdicts), encoding="utf-8")
        print(f"written: {PAGE}")
    if not args.check:
        return 0
    bad = sum(counts[outcome] for outcome in OUTCOMES if outcome not in (RIGHT, REFUSED))
    wanted = 0 if args.only else committed(PAGE.read_text(encoding="utf-8"))
    if counts[RIGHT] < wanted:
        print(f"{counts[RIGHT]} are right, {wanted} were", file=sys.stderr)
    return int(bad > 0 or counts[RIGHT] < wanted)


def _pattern(text: str) -> str:
    """A regular expression, or what is wrong with it."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def _tell(verdict: Verdict) -> None:
    _done.append(verdict.outcome)
    if len(_done) % 100 == 0:
        print(f"{len(_done)} cases", file=sys.stderr, flush=True)
    if verdict.outcome not in (RIGHT, REFUSED):
        print(f"{verdict.outcome:8} {verdict.name}: {verdict.message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
