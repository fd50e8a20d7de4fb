"""The workers as a module of TVM's, compiled once for each kind of processor."""

import ctypes
import functools
import threading

import tvm
from tvm import ir, tirx
from tvm.script import tirx as T

from ....device.cores import REGISTERED, num_workers
from .entries import ENTRIES, MAKE, entries
from .sources import workers_text

_ESTABLISH = "rammer_establish"
_LOCK = threading.Lock()


@functools.cache
def workers_module(triple: str, machine: str) -> tvm.runtime.Module:
    """The workers, as one more module that an executable imports: so it is in every library that is made of it.

    Parameters
    ----------
    triple : str
        Of the target, as LLVM writes it; empty for this machine's. The code runs on all processors of the kind.
    machine : str
        The same kind as `platform.machine` says it; empty for this machine's.
    """
    slot = tirx.decl_buffer((1,), "int64", "slot")
    call = tirx.Evaluate(T.call_extern("int32", MAKE, slot.data))
    text = workers_text(machine) + ENTRIES
    body = tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", ir.StringImm(text), call)
    main = tirx.PrimFunc([slot], body).with_attr("global_symbol", _ESTABLISH)
    target = {"kind": "llvm", **({"mtriple": triple} if triple else {})}
    return tvm.tirx.build(tvm.IRModule({_ESTABLISH: main, **entries()}), target=tvm.target.Target(target))


def establish() -> None:
    """Make the pool of this process, unless there is one; it stays as long as the process."""
    with _LOCK:
        if tvm.get_global_func(REGISTERED, allow_missing=True) is None:
            module = workers_module("", "")
            module[_ESTABLISH](tvm.runtime.empty((1,), "int64"))
            # Helper threads run this code until the process ends.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
            tvm.get_global_func(REGISTERED)(num_workers())
