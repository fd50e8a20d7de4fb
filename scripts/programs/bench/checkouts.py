"""This checkout against another one, such as the commit before: has anything become slower?

Each compiles the same models in a process of its own and calls them in turns. Results are compared first; a ratio is
the other one's median over ours, of each pair of turns the median, so above 1 this one is faster. The last
columns are processor seconds up to the first results: to start, to compile, and to run once.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile

import onnx

from tvm_rammer.benchmark.neighbours import TOLERANCE, Engine
from tvm_rammer.benchmark.race import relative_error
from tvm_rammer.errors import ModelError
from tvm_rammer.zoo.models import MODELS, model_names

NAMES = [name for name in MODELS if "10 x 20" not in name and "8 products" not in name]
HERE = pathlib.Path(__file__).resolve().parents[3]


def row(name: str, other: pathlib.Path, threads: int, turns: int, seconds: float) -> str:
    """A line of the table."""
    with tempfile.TemporaryDirectory(prefix="rammer-") as folder:
        path = pathlib.Path(folder)
        onnx.save(MODELS[name](), path / "model.onnx")

        def engine(checkout: pathlib.Path, result: str) -> Engine:
            return Engine("rammer", path / "model.onnx", threads, path / result, checkout=checkout)

        with engine(other, "other.npz") as before, engine(HERE, "ours.npz") as now:
            errors = [relative_error(a, b) for a, b in zip(now.results(), before.results(), strict=True)]
            if max(errors) > TOLERANCE:
                raise ModelError(f"{name} has another result there: they differ by {max(errors):.0e}; mend that first")
            pairs = []
            for turn in range(turns):
                medians = {}
                for contender in (before, now) if turn % 2 else (now, before):
                    contender.start(seconds)
                    medians[contender] = statistics.median(contender.times())
                pairs.append((medians[before], medians[now]))
    ratio = statistics.median(then / ours for then, ours in pairs)
    then, ours = (statistics.median(times) for times in zip(*pairs, strict=True))
    compiled = f"{before.first_s:.1f} | {now.first_s:.1f} | {before.first_s / now.first_s:.2f}"
    return f"| {name} | {then:.3f} | {ours:.3f} | {ratio:.2f} | {max(errors):.0e} | {compiled} |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=pathlib.Path, help="the folder of another checkout of this repository")
    parser.add_argument(
        "--models", type=model_names, default=",".join(NAMES), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--turns", type=int, default=9, metavar="N", help="of each")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="SECONDS", help="of a turn")
    args = parser.parse_args()
    if not (args.other / "tvm_rammer").is_dir():
        print(f"bench: there is no package in {args.other}; give the folder of a checkout", file=sys.stderr)
        return 2
    print("| model | there, ms | here, ms | ratio | differ by | to the first results: there, s | here, s | ratio |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in args.models:
        print(row(name, args.other.resolve(), args.threads, args.turns, args.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
