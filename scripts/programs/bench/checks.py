"""What it costs that indices which only the data know are checked: models with the checks and without, as a table.

On one thread, by processor time; both take turns, and the fastest run of each counts. Without checks an index outside
would read, or write, anywhere: nothing but this program compiles so.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping
from unittest.mock import patch

os.environ["TVM_NUM_THREADS"] = "1"

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper

import tvm_rammer
from tvm_rammer.zoo.transformer import transformer_encoder

TOKENS, WIDTH, WORDS = 32, 128, 30522
TURN = 20
"""Calls of one in a row."""

Case = tuple[onnx.ModelProto, dict[str, np.ndarray]]


def encoder() -> Case:
    """A text model: words are looked up, then two layers of a transformer."""
    model, rng = transformer_encoder(2, TOKENS, WIDTH), np.random.default_rng(0)
    del model.graph.input[:]
    model.graph.input.append(helper.make_tensor_value_info("words", TensorProto.INT64, [1, TOKENS]))
    table = rng.standard_normal((WORDS, WIDTH)).astype("float32")
    model.graph.initializer.append(numpy_helper.from_array(table, "table"))
    model.graph.node.insert(0, helper.make_node("Gather", ["table", "words"], ["x"]))
    return model, {"words": rng.integers(0, WORDS, (1, TOKENS))}


def lookup() -> Case:
    """Words that are looked up, and nothing else: all that a check can be a part of."""
    rng = np.random.default_rng(0)
    table = numpy_helper.from_array(rng.standard_normal((WORDS, WIDTH)).astype("float32"), "table")
    nodes = [helper.make_node("Gather", ["table", "words"], ["y"])]
    return _model(nodes, {"words": rng.integers(0, WORDS, (1, TOKENS))}, [table])


def update() -> Case:
    """Rows that are written into a cache of 512, as attention of a decoder has it."""
    rng = np.random.default_rng(0)
    arrays = {"cache": (512, WIDTH), "rows": (4, WIDTH)}
    feeds = {name: rng.standard_normal(shape).astype("float32") for name, shape in arrays.items()}
    nodes = [helper.make_node("ScatterND", ["cache", "places", "rows"], ["y"])]
    return _model(nodes, {**feeds, "places": rng.integers(0, 512, (4, 1))}, [])


def _model(nodes: list[onnx.NodeProto], feeds: Mapping[str, np.ndarray], weights: list[onnx.TensorProto]) -> Case:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "indices", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), dict(feeds)


MODELS: dict[str, Callable[[], Case]] = {
    "32 words, 2 layers of a transformer": encoder,
    "32 words alone": lookup,
    "4 rows into a cache of 512": update,
}


def row(name: str, seconds: float) -> str:
    """A line of the table."""
    model, feeds = MODELS[name]()
    unchecked = tvm.transform.module_pass(lambda mod, _: mod, opt_level=0)
    modules = {"checked": tvm_rammer.compile(model, cache=False)}
    with patch("tvm_rammer.relay_passes.prepare.CheckIndices", lambda: unchecked):
        modules["unchecked"] = tvm_rammer.compile(model, cache=False)
    first, second = (np.asarray(module(**feeds)) for module in modules.values())
    if not np.array_equal(first, second):
        raise SystemExit(f"checks: the results of {name!r} differ")
    best = dict.fromkeys(modules, float("inf"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for how, module in modules.items():
            begin = time.process_time()
            for _ in range(TURN):
                module(**feeds)
            best[how] = min(best[how], (time.process_time() - begin) / TURN * 1e6)
    more = best["checked"] - best["unchecked"]
    return f"| {name} | {best['unchecked']:.1f} | {more:+.1f} | {more / best['unchecked']:+.1%} |"


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="for each model")
    arguments = parser.parse_args()
    print("| model | without checks, us | checks, us | share |\n|---|---|---|---|", flush=True)
    for name in MODELS:
        print(row(name, arguments.seconds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
