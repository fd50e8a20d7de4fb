"""Random well-formed ONNX graphs."""

import random
from collections.abc import Sequence

import onnx
from onnx import helper

from ..case import ModelCase
from ..operators import TABLE
from .builder import Builder, onnx_type

OPSETS = (7, 9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 18, 19, 20, 21, 22, 23, 24, 25, 26)
IR_VERSION = 10


def graph_case(seed: int, only: Sequence[str] | None = None, most: int = 12) -> ModelCase:
    """Make a model of 1 to `most` nodes, and values for its inputs.

    Parameters
    ----------
    seed : int
        The same seed makes the same case.
    only : sequence of str, optional
        The operators to choose from.
    most : int
    """
    rng = random.Random(f"graphs/{seed}")
    while True:
        size = min(most, rng.choice([1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 12]))
        builder = grow(rng, rng.choice(OPSETS), size, only or list(TABLE))
        model = finish(builder)
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception:
            continue  # inference is more lenient than the checker
        if model.graph.output:
            feeds = {i.name: builder.feeds[i.name] for i in model.graph.input if i.name in builder.feeds}
            return ModelCase("graphs", seed, model.SerializeToString(), feeds)


def ways_case(seed: int) -> ModelCase:
    """Make a random graph that is to be saved, exported, called by threads and so on (`judge.ways`)."""
    case = graph_case(seed ^ 0x3A75, most=8)
    return ModelCase("ways", seed, case.data, case.feeds)


def gpu_case(seed: int) -> ModelCase:
    """Make a random graph that is to run on an emulated GPU (`judge.gpus`)."""
    case = graph_case(seed ^ 0x6B5, most=8)
    return ModelCase("gpus", seed, case.data, case.feeds)


def grow(rng: random.Random, opset: int, size: int, operators: Sequence[str]) -> Builder:
    """Append nodes until there are `size`, or it seems impossible."""
    builder = Builder(rng, opset)
    for _ in range(8 * size):
        if len(builder.nodes) >= size:
            break
        try:
            TABLE[rng.choice(operators)](builder)
        except onnx.defs.SchemaError:
            continue  # no such operator at this opset
        except (ValueError, IndexError, AssertionError):
            continue  # the tensor at hand allows no such node
    return builder


def finish(builder: Builder) -> onnx.ModelProto:
    """The model whose outputs are what nothing reads, and some other values."""
    read = {i for node in builder.nodes for i in node.input}
    made = [o for node in builder.nodes for o in node.output if o in builder.values]  # but sequences
    outputs = []
    for name in made:
        if name in read and not builder.chance(0.1):
            continue
        if builder.values[name].dtype not in _PLAIN:
            name = builder.cast(name, "float32")
        value = builder.values[name]
        shape = value.shape
        if shape is None or builder.chance(0.1):
            rank = value.rank if shape is None else len(shape)
            shape = [f"{name}_{i}" for i in range(rank)]
        outputs.append(helper.make_tensor_value_info(name, onnx_type(value.dtype), shape))
    graph = builder.graph("fuzz", outputs)
    del graph.value_info[:]
    return helper.make_model(graph, opset_imports=builder.imports(), ir_version=IR_VERSION)


_PLAIN = {"float32", "float64", "float16", "bool"} | {f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)}
