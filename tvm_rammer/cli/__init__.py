"""The command line: `tvm-rammer`, also `python -m tvm_rammer`; a command a file.

    options   the options that commands share
    compile, run, explain, report, export, bench, profile, fix, tune   commands about a model
    kept/     commands about what is kept on this machine: cache, warm, device
    main      puts them together; what goes wrong becomes one line and a status

Nothing here imports TVM before a command runs.
"""

from .main import console, main

__all__ = ["console", "main"]
