"""Time to the first answer of a new process, with and without caches, beside ONNX Runtime and OpenVINO."""

import argparse
import sys

from tvm_rammer.benchmark.startup import WAYS, first_answers
from tvm_rammer.zoo.models import MODELS, model_names

NAMES = ("SqueezeNet", "ONNX LSTM 2 x 50 x 32")


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=model_names, default=list(NAMES), metavar="A,B")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="processes of each kind")
    arguments = parser.parse_args()
    print("| seconds to the first answer | " + " | ".join(way.label for way in WAYS) + " |")
    print("|---" * (1 + len(WAYS)) + "|", flush=True)
    for name in arguments.models:
        found = first_answers(MODELS[name](), threads=arguments.threads, runs=arguments.runs)
        print(f"| {name} | " + " | ".join(f"{found[w.label]:.2f}" if w.label in found else "-" for w in WAYS) + " |")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
