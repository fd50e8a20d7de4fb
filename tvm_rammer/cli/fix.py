"""`tvm-rammer fix`: make constants of inputs that are always the same."""

import argparse
import json
from typing import Any

from ..errors import RammerError
from ..files import not_written, replacing
from .options import MODEL_HELP, model_of, read_array


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("fix", help="make constants of inputs that are always the same")
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument("values", nargs="+", metavar="NAME=NUMBER", help="an input and its value, or a .npy file of it")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.onnx", help="where to write the model")
    parser.set_defaults(run=run, writes=("output",))


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import onnx

    from ..relay_passes.onnx.fix_inputs import fix_inputs

    values = {}
    for text in arguments.values:
        name, _, value = text.rpartition("=")
        try:
            if not name:
                raise ValueError("no input is named")
            values[name] = _value(value)
        except ValueError as error:
            raise RammerError(f"{text!r}: {error}; give NAME=NUMBER or NAME=FILE.npy") from error
    proto = fix_inputs(model_of(arguments.model), values)
    try:
        with replacing(arguments.output) as new:
            onnx.save(proto, new)
    except ValueError as error:  # larger than a file of protocol buffers may be
        raise not_written(arguments.output, error) from error
    print(f"wrote {arguments.output}; its inputs are {', '.join(value.name for value in proto.graph.input) or 'none'}")


def _value(text: str) -> Any:
    if text.endswith(".npy"):
        return read_array(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{text!r} is no number") from error
