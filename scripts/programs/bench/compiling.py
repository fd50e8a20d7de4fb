"""Time and memory of compiling long models, against n log n, with results compared with ONNX Runtime's; and leaks."""

import argparse
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[3]))

from tests.growth import memory
from tests.growth.measure import Compiled, compiled
from tests.growth.models import CHAINS, MODELS
from tvm_rammer.zoo.models import names_of

LONG = {
    "LSTM": (500, 1000, 4000),
    "LSTM unrolled": (500, 1000, 2000),
    "Loop": (500, 1000, 2000),
    "Loop unrolled": (500, 1000, 2000),
    "Concat": (125, 500, 2000),
}
"""Steps, rounds and layers; chains have the lengths that are asked for."""


def growth(lengths: list[int], found: list[Compiled]) -> float:
    """The time of the longest model over that of the one before, in units of what n log n makes of it."""
    n, m = lengths[-2:]
    return (found[-1].seconds / found[-2].seconds) / (m * math.log(m) / (n * math.log(n)))


def print_leaks(calls: int, compilations: int) -> None:
    """Print what stays in memory after many calls, and after many compilations."""
    print(f"{calls} calls: {memory.after_calls(2000, calls):+.1f} MB", flush=True)
    print(f"{compilations} compilations: {memory.after_compilations(20, compilations):+.1f} MB")


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", default="50,500,5000", metavar="A,B", help="of the chains")
    parser.add_argument(
        "--only", type=names_of("kinds", [*CHAINS, *MODELS]), default=",".join([*CHAINS, *MODELS]), metavar="KIND,KIND"
    )
    parser.add_argument("--leaks", action="store_true", help="make 100,000 calls and 300 compilations instead")
    arguments = parser.parse_args()
    if arguments.leaks:
        print_leaks(100_000, 300)
        return 0
    print("| of | n | seconds | MB | rOperators | error | times n log n |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for kind in arguments.only:
        lengths = [*LONG.get(kind, map(int, arguments.lengths.split(",")))]
        found = compiled(kind, lengths)
        seconds, memory = (" / ".join(form % value for value in values) for form, values in (
            ("%.1f", [f.seconds for f in found]), ("%.0f", [f.megabytes for f in found]))
        )  # fmt: skip
        operators, error = " / ".join(str(f.operators) for f in found), max(f.error for f in found)
        row = (kind, " / ".join(map(str, lengths)), seconds, memory, operators, f"{error:.0e}")
        print(f"| {' | '.join(row)} | {growth(lengths, found):.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
