"""The workers of the CPU vDevice: threads of our own that walk the lanes of a program, shared by all modules.

    workers.h, workers.c   lanes, claims, helpers; what the code of a program calls
    pool.h                 finding the one pool of a process
    workers.ll             the same as LLVM IR, made by make_ir.py: part of every module
    entries.py             functions of TIR whose addresses the workers take
    processors.py          what depends on the processor: how to pause, and a system call

In go a program's lanes and the function that walks one; a call ends when all are walked. The pool is made by the first
library that runs. Code that TVM compiled in memory is unloaded with its module, so `establish` makes the pool where one
compiles.
"""

import ctypes
import hashlib
import pathlib
import platform
import threading

import tvm
from tvm import ir, tirx
from tvm.script import tirx as T

from ....device.cores import REGISTERED, num_workers
from .entries import entries_text, function_of, plain_functions, pool_entries
from .processors import processor_text

__all__ = [
    "FOLDER",
    "digest_of_source",
    "entries_text",
    "establish",
    "function_of",
    "num_workers",
    "plain_functions",
    "pool_entries",
    "workers_text",
]

FOLDER = pathlib.Path(__file__).parent
SOURCES = ("workers.h", "pool.h", "workers.c")

_LOCK = threading.Lock()

_MAKE = """
define internal void @rammer_make() {
  %pool = call ptr @rammer_pool(ptr @make_pool_entries)
  ret void
}
"""


def digest_of_source() -> str:
    """A digest of the C source, which workers.ll carries too."""
    return hashlib.sha256(b"".join((FOLDER / name).read_bytes() for name in SOURCES)).hexdigest()[:16]


def workers_text(machine: str = "") -> str:
    """The workers as LLVM IR, for a kind of machine (`platform.machine`); for this one where none is named."""
    return (FOLDER / "workers.ll").read_text(encoding="utf-8") + processor_text(machine or platform.machine())


def establish() -> None:
    """Make the pool of this process, unless there is one; it stays as long as the process."""
    with _LOCK:
        if tvm.get_global_func(REGISTERED, allow_missing=True) is None:
            _make()
            tvm.get_global_func(REGISTERED)(num_workers())


def _make() -> None:
    name = "make_pool"
    params = [tirx.Var("lane" if i == 1 else f"p{i}", "int32" if i == 1 else "handle") for i in range(4)]
    text = workers_text() + entries_text(name) + _MAKE
    call = tirx.Evaluate(T.call_extern("void", "rammer_make"))
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), call)
    functions = plain_functions({f"{name}_walk": function_of(params, []), **pool_entries(name)})
    main = tirx.PrimFunc([], body).with_attr("global_symbol", name)
    module = tvm.compile(tvm.IRModule({name: main, **functions}), tvm.target.Target("llvm"))
    module[name]()
    # Helper threads run this code until the process ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
