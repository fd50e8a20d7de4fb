"""Time a set of models and print a Markdown table: see `scripts/bench`."""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import onnx

from tvm_rammer.bench import bench
from tvm_rammer.zoo.alexnet import alexnet
from tvm_rammer.zoo.before_softmax import before_softmax
from tvm_rammer.zoo.deepspeech2 import deepspeech2
from tvm_rammer.zoo.inception_module import inception_module
from tvm_rammer.zoo.inception_v3 import inception_v3
from tvm_rammer.zoo.lstm_stack import lstm_stack
from tvm_rammer.zoo.nasnet import nasnet
from tvm_rammer.zoo.random_weights import random_weights
from tvm_rammer.zoo.resnext import resnext29
from tvm_rammer.zoo.seq2seq import seq2seq

LIGHT = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def light(name: str) -> onnx.ModelProto:
    """A light model of the onnx package, with weights that say something."""
    return before_softmax(random_weights(onnx.load(LIGHT / f"light_{name}.onnx")))


MODELS = {
    "SqueezeNet": lambda: light("squeezenet"),
    "Inception v1": lambda: light("inception_v1"),
    "Inception v3": inception_v3,
    "ResNet-50": lambda: light("resnet50"),
    "DenseNet-121": lambda: light("densenet121"),
    "ShuffleNet": lambda: light("shufflenet"),
    "Inception module": inception_module,
    "LSTM 8 x 8 x 256": lambda: lstm_stack(8, 8, 256),
    "LSTM 10 x 100 x 256": lambda: lstm_stack(10, 100, 256),
    "LSTM 10 x 100 x 256 (8 products a cell)": lambda: lstm_stack(10, 100, 256, fused_gates=False),
    "ResNeXt-29 (branches)": resnext29,
    "ResNeXt-29 (grouped)": lambda: resnext29(grouped=True),
    "NASNet-A": nasnet,
    "AlexNet": alexnet,
    "DeepSpeech2": deepspeech2,
    "DeepSpeech2 (8 products a cell)": lambda: deepspeech2(fused_gates=False),
    "Seq2Seq": seq2seq,
    "Seq2Seq (8 products a cell)": lambda: seq2seq(fused_gates=False),
}


def main() -> int:
    """Measure each model in turn; every row is printed as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", default="stock-same-kernels,onnxruntime", metavar="A,B")
    parser.add_argument("--models", default=",".join(MODELS), metavar="A,B", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--repeat", type=int, default=50, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="the median of so many whole benchmarks")
    parser.add_argument("--logs", metavar="DIR", help="tuning logs, as `tune` writes them")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path)
    arguments = parser.parse_args()
    against = arguments.against.split(",")
    wanted = arguments.models.split(",")
    if unknown := [name for name in wanted if name not in MODELS]:
        parser.error(f"unknown models {', '.join(unknown)}; choose from {', '.join(MODELS)}")
    print("| model | rOperators | launches | ours, ms | " + " | ".join(f"{a}, times ours" for a in against) + " |")
    print("|---" * (4 + len(against)) + "|", flush=True)
    found = {}
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            onnx.save(MODELS[name](), path)
            found[name] = [
                bench(path, against=against, repeat=arguments.repeat, tuning_logs=arguments.logs, progress=say)
                for _ in range(arguments.rounds)
            ]
        print(row(name, found[name], against), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def row(name: str, rounds: list[dict], against: list[str]) -> str:
    """A line of the table; a ratio is the median over the rounds."""
    facts = rounds[0]["report"]
    ours = statistics.median(r["results"]["rammer"]["median_ms"] for r in rounds)
    ratios = [
        f"{statistics.median(r['ratios'][a] for r in rounds):.2f}" if a in rounds[0]["ratios"] else "missing"
        for a in against
    ]
    return f"| {name} | {facts['roperators']} | {facts['launches']} | {ours:.2f} | " + " | ".join(ratios) + " |"


def say(message: str) -> None:
    """Show progress."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
