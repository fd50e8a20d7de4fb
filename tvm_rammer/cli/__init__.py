"""The command line: `tvm-rammer`, also `python -m tvm_rammer`; a command a file.

    options   the options that commands share
    compile, run, explain, report, bench, profile, fix, tune, cache   the commands
    main      puts them together; what goes wrong becomes one line and a status

Nothing here imports TVM before a command runs.
"""

from .main import console, main

__all__ = ["console", "main"]
