"""Compile random and damaged models, and compare with others what they compute: see `scripts/fuzz`."""

import argparse
import datetime
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from tests.fuzz.campaign import Campaign, Plan
from tests.fuzz.kinds import ALL, KINDS
from tvm_rammer.zoo.models import names_of


def main() -> int:
    """Fuzz, print what was found, and return 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, metavar="N")
    parser.add_argument(
        "--seed", type=int, default=int(f"{datetime.date.today():%Y%m%d}"), metavar="S", help="today's date"
    )
    parser.add_argument(
        "--kinds", type=names_of("kinds", ALL), default=",".join(KINDS), metavar="A,B", help="of " + ", ".join(KINDS)
    )
    parser.add_argument(
        "--out", type=pathlib.Path, default=pathlib.Path("out/fuzz"), metavar="DIR", help="for test files"
    )
    parser.add_argument("--show", action="store_true", help="print those files, too, for a log that is all that stays")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="workers at a time")
    parser.add_argument("--cases", type=int, metavar="N", help="stop after so many, too")
    parser.add_argument("--case", type=case, metavar="KIND:SEED", help="run this one only, and say what came of it")
    options = parser.parse_args()
    os.environ["RAMMER_CACHE_BYTES"] = "0"  # no model comes twice
    if options.case:
        return one(options.case)
    print(f"seed {options.seed}, {options.minutes:g} minutes, kinds {', '.join(options.kinds)}", flush=True)
    plan = Plan(options.kinds, options.seed, options.minutes * 60, options.out, options.jobs, options.cases)
    started = time.monotonic()
    summary = Campaign(plan, lambda text: print(text, flush=True)).run()
    print(f"\n{time.monotonic() - started:.0f} s, seed {options.seed}\n\n{summary.text()}")
    if options.show:
        for found in summary.found.values():
            print(f"\n# {found.path}\n\n{pathlib.Path(found.path).read_text(encoding='utf-8')}")
    return 1 if summary.failures else 0


def case(text: str) -> tuple[str, int]:
    """The `type` of an argument that is the name of a case."""
    kind, _, seed = text.partition(":")
    if kind not in ALL or not seed.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no KIND:SEED; the kinds are {', '.join(KINDS)}")
    return kind, int(seed)


def one(case: tuple[str, int]) -> int:
    """Run one case."""
    import threading

    from tests.fuzz.client import Client

    with Client(threading.Event()) as client:
        report = client.run(case)
    print(f"{report.outcome}: {report.detail} {report.where}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
