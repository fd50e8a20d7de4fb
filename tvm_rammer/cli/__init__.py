"""The command line: `tvm-rammer`, also `python -m tvm_rammer`; a command a file.

    options   the options that commands share
    compile, run, explain, bench, profile, fix, tune   the commands
    main      puts them together; an error of ours becomes one line and status 1

Nothing here imports TVM before a command runs.
"""

from .main import main

__all__ = ["main"]
