"""What the second and third set of shapes of a model cost to compile, and what each costs to load in a new process."""

import argparse
import sys
from collections.abc import Callable

import onnx

from tvm_rammer.benchmark.shapes import costs_of_shapes
from tvm_rammer.zoo.light import light
from tvm_rammer.zoo.models import names_of
from tvm_rammer.zoo.onnx_lstm import onnx_lstm
from tvm_rammer.zoo.open_shapes.line_reader import line_reader


def opened(model: onnx.ModelProto, names: dict[int, str]) -> onnx.ModelProto:
    """A model some axes of whose input have names."""
    weights = {tensor.name for tensor in model.graph.initializer}
    given = next(value for value in model.graph.input if value.name not in weights)
    for axis, name in names.items():
        given.type.tensor_type.shape.dim[axis].dim_param = name
    return model


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], list[dict[str, int]]]] = {
    "line reader": (line_reader, [{"width": width} for width in (128, 160, 192)]),
    "SqueezeNet": (
        lambda: opened(light("squeezenet"), {2: "height", 3: "width"}),
        [{"height": size, "width": size} for size in (224, 256, 192)],
    ),
    "ONNX LSTM 2 x n x 32": (lambda: opened(onnx_lstm(), {0: "steps"}), [{"steps": steps} for steps in (50, 40, 60)]),
}


def main() -> int:
    """Print the table; every row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=names_of("models", MODELS), default=",".join(MODELS), metavar="MODEL,MODEL")
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    arguments = parser.parse_args()
    print(
        "| model | sizes | compiling, processor s | of the first | wall s | import tvm, processor s "
        "| answer from the cache, processor s |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for name in arguments.only:
        make, every = MODELS[name]
        found = costs_of_shapes(make(), every, threads=arguments.threads)
        for sizes, cost in zip(every, found, strict=True):
            ratio = cost.processor_s / found[0].processor_s
            print(
                f"| {name} | {', '.join(f'{n} {s}' for n, s in sizes.items())} | {cost.processor_s:.2f} | {ratio:.2f} "
                f"| {cost.wall_s:.2f} | {cost.import_s:.2f} | {cost.answer_s:.2f} |"
            )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
