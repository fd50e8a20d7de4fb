"""The workers of the CPU vDevice: threads of our own that walk the lanes of a program, shared by all modules.

    workers.h, workers.c   lanes, claims, helpers
    pool.h, registry.h     making the one pool of a process; finding it
    client.c               what the code of each program calls
    workers.ll, client.ll  the same as LLVM IR, made by make_ir.py
    entries.py             functions of TIR whose addresses the workers take
    sources.py             reads them
    module.py              the workers as a module of TVM's: in memory, and in the libraries that are made of modules

In go a program's lanes and the function that walks one; a call ends when all are walked. The client's text is part of
each program's code; that of the workers is ten times as long, and compiled once a process.
"""

from ....device.cores import num_workers
from .entries import function_of, plain_functions
from .module import establish, workers_module
from .sources import client_text

__all__ = [
    "client_text",
    "establish",
    "function_of",
    "num_workers",
    "plain_functions",
    "workers_module",
]
