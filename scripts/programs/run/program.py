"""Run a program of `scripts/programs`: what the package refuses, and Ctrl-C, end in one line, not in a traceback."""

import os
import pathlib
import runpy
import sys

from tvm_rammer import debug
from tvm_rammer.errors import RammerError, first_line


def main() -> int:
    """Run the program that the first argument names with all further ones.

    Returns
    -------
    int
        1 where it failed with an error of ours, 130 where somebody interrupted it.
    """
    program = sys.argv.pop(1)
    sys.path[0] = os.path.dirname(os.path.abspath(program))  # as where Python is given the file
    sys.argv[0] = program
    try:
        runpy.run_path(program, run_name="__main__")
    except RammerError as error:
        if debug.level():
            raise
        sys.stdout.flush()
        print(f"{pathlib.Path(program).stem}: {first_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        sys.stdout.flush()
        print(f"{pathlib.Path(program).stem}: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
