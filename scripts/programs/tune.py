"""`tvm-rammer tune` for models that are made here: see `scripts/tune`."""

import pathlib
import sys
import tempfile

import onnx

from tvm_rammer import cli
from tvm_rammer.benchmark.operators import OPERATORS
from tvm_rammer.zoo.light import NAMES, light


def models(name: str) -> list[onnx.ModelProto]:
    """The models that a name stands for; none for the name of a file."""
    kind, _, rest = name.partition(":")
    if kind == "light" and rest in NAMES:
        return [light(rest)]
    if kind == "operators":
        return [operator.model() for name, operator in OPERATORS.items() if rest in name]
    return []


def main() -> int:
    """Write the models that are named to files, and tune those."""
    with tempfile.TemporaryDirectory() as folder:
        arguments: list[str] = []
        for argument in sys.argv[1:]:
            made = models(argument)
            paths = [pathlib.Path(folder, f"{len(arguments) + i}.onnx") for i in range(len(made))]
            for model, path in zip(made, paths, strict=True):
                onnx.save(model, path)
            arguments += [str(path) for path in paths] or [argument]
        return cli.main(["tune", *arguments])


if __name__ == "__main__":
    sys.exit(main())
