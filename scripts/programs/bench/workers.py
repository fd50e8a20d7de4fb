"""Models planned for more and fewer workers than there are processors: right on all, and how much slower than on two.

All plans of a model run in turns in this process, and their results are compared first. A process has no more workers
than processors, so on plans for more they take turns on the lanes.
"""

import argparse
import statistics
import sys

import tvm_rammer
from tvm_rammer.benchmark.race import race, tvm_runner
from tvm_rammer.runtime.tensors import random_inputs
from tvm_rammer.zoo.models import MODELS, model_names

WORKERS = (1, 2, 4, 8, 16)
NAMES = [name for name in MODELS if "10 x 20" not in name]


def row(name: str, repeat: int, rounds: int) -> str:
    """A line of the table: for each number of workers the median, over that on two; the number of lanes in brackets."""
    model = MODELS[name]()
    modules = {count: tvm_rammer.compile(model, threads=count, cache=False) for count in WORKERS}
    runners = {str(count): tvm_runner(m.executable, m.runtime_device()) for count, m in modules.items()}
    inputs = random_inputs(modules[2].inputs, seed=0)
    found = race(runners, inputs, repeat, rounds=rounds)
    medians = {count: statistics.median(found[str(count)].times) for count in WORKERS}
    lanes = {count: module.report()["veus"] for count, module in modules.items()}
    cells = [f"{medians[count] / medians[2]:.2f} ({lanes[count]})" for count in WORKERS]
    error = max(samples.max_rel_err for samples in found.values())
    return f"| {name} | {medians[2]:.2f} | {' | '.join(cells)} | {error:.0e} |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--models", type=model_names, default=",".join(NAMES), metavar="A,B", help=f"some of {', '.join(MODELS)}"
    )
    parser.add_argument("--repeat", type=int, default=10, metavar="N")
    parser.add_argument("--rounds", type=int, default=4, metavar="N", help="of which half count")
    arguments = parser.parse_args()
    print("| model | 2 workers, ms | " + " | ".join(f"{count}, times 2" for count in WORKERS) + " | differ by |")
    print("|---" * (3 + len(WORKERS)) + "|", flush=True)
    for name in arguments.models:
        print(row(name, arguments.repeat, arguments.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
