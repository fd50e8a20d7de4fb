"""Print a table of single operators: our kernels against ONNX Runtime or OpenVINO."""

import argparse
import json
import pathlib
import sys

from tvm_rammer.benchmark.kernels import as_json, as_table, bench_kernels
from tvm_rammer.benchmark.peers import PACKAGES


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="operators whose names contain this")
    parser.add_argument("--against", default="onnxruntime", choices=PACKAGES)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--seconds", type=float, default=0.6, help="for each operator and contender")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    options = parser.parse_args()
    rows = bench_kernels(
        options.only,
        against=options.against,
        seconds=options.seconds,
        tuning_logs=options.logs,
        progress=lambda name: print(name, file=sys.stderr),
    )
    print(as_table(rows))
    if options.json:
        options.json.write_text(json.dumps(as_json(rows), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
