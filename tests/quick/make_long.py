"""Write long.txt, what `./scripts/test --quick` leaves out beside the cases that are marked: tests that take long.

Times are those of runs of all tests, with `-n logical --dist worksteal`: `./scripts/test tests --junitxml=times.xml`,
the same with tests/torch_backend, and then `.venv/bin/python -m tests.quick.make_long times.xml torch_times.xml`.
"""

import argparse
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict

ROOT = pathlib.Path(__file__).parents[2]
LIST = pathlib.Path(__file__).with_name("long.txt")
ELSEWHERE = "tests/torch_backend/"
"""What is collected in another environment only."""
MOST_CASES = 0.6
"""Of more than three cases of a test: where this share takes long, the test does."""


def main() -> int:
    """Write the list; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("times", type=pathlib.Path, nargs="+", help="what pytest's --junitxml wrote")
    parser.add_argument("--seconds", type=float, default=0.2, help="what takes longer is long (default: %(default)s)")
    args = parser.parse_args()
    cases: dict[str, dict[str, float]] = defaultdict(dict)
    quick = not_marked()
    for case in (case for times in args.times for case in ElementTree.parse(times).iter("testcase")):
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        if name in quick or name.startswith(ELSEWHERE):
            cases[name.partition("[")[0]][name] = float(case.get("time", 0))
    names = [name for test in sorted(cases) for name in long_ones(test, cases[test], args.seconds)]
    LIST.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    print(f"{LIST}: {len(names)} tests or cases of tests")
    return 0


def long_ones(test: str, seconds: dict[str, float], limit: float) -> list[str]:
    """The cases of a test that take long, or the test itself where most of them do."""
    found = sorted(name for name, taken in seconds.items() if taken > limit)
    most = len(found) == len(seconds) or (len(seconds) > 3 and len(found) >= MOST_CASES * len(seconds))
    return [test] if most and found else found


def not_marked() -> set[str]:
    """What nobody has marked as slow."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "not slow", "tests"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return {line for line in told.stdout.splitlines() if "::" in line}


if __name__ == "__main__":
    sys.exit(main())
