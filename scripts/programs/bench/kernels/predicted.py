"""How far predictions of kernels are off: single operators, profiled.

A call of a model of one operator also copies results and passes through Python; a profile has the kernels alone, as
they run within an rProgram. Of each operator the time of all its rTasks counts, on whichever vEU they run.
"""

import argparse
import statistics

import tvm_rammer
from tvm_rammer.benchmark.operators import BYTES_OPERATORS, OPERATORS
from tvm_rammer.ir import unroll


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="operators whose names contain this")
    parser.add_argument("--runs", type=int, default=60, metavar="N", help="of each operator")
    arguments = parser.parse_args()
    print("| operator | rTasks | profiled us | predicted us | profiled / predicted |\n|---|---|---|---|---|")
    ratios = []
    for name, operator in (OPERATORS | BYTES_OPERATORS).items():
        if arguments.only in name:
            profile = tvm_rammer.profile(operator.model(), runs=arguments.runs)
            kernels = [k for p in profile.compilation.programs for k in unroll(p).kernels]
            taken = sum(profile.rtask_us[k.name] * k.num_rtasks for k in kernels)
            predicted = sum(k.rtask_us * k.num_rtasks for k in kernels)
            ratios.append(taken / predicted)
            rtasks = sum(k.num_rtasks for k in kernels)
            print(f"| {name} | {rtasks} | {taken:.1f} | {predicted:.1f} | {ratios[-1]:.2f} |", flush=True)
    if ratios:
        within = sum(0.5 <= ratio <= 2 for ratio in ratios)
        print(f"\nmedian {statistics.median(ratios):.2f}; within a factor of 2: {within} of {len(ratios)}")


if __name__ == "__main__":
    main()
