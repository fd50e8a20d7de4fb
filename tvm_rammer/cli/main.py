"""The parser of the command line, and what an error becomes."""

import argparse
import sys
from collections.abc import Sequence

from ..errors import RammerError
from . import bench, compile, explain, fix, profile, run, tune

COMMANDS = (compile, run, explain, bench, profile, fix, tune)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0, or 1 where the command failed; what was wrong is on standard error.
    """
    parser = argparse.ArgumentParser(prog="tvm-rammer", description="Compile models to persistent rPrograms (Rammer).")
    commands = parser.add_subparsers(title="commands", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    arguments = parser.parse_args(argv)
    try:
        arguments.run(arguments)
    except RammerError as error:
        print(f"tvm-rammer: {error}", file=sys.stderr)
        return 1
    return 0
