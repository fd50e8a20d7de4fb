"""How the interpreter calls rTasks: by LLVM IR that says that they are not to be inlined.

TIR has no word for that. LLVM would compile each small function twice, alone and within the interpreter; there all of
them are one function, and the time of some passes grows faster than its size.
"""

import string
from collections.abc import Iterable

from tvm import ir
from tvm.script import tirx as T

from ...kernel import RTaskFunction

_CALL = """
declare void {function}({types})
define internal void {stub}({parameters}) alwaysinline {{
  call void {function}({parameters}) noinline
  ret void
}}
"""
_PLAIN = frozenset(string.ascii_letters + string.digits + "_")


def call_rtask(function: RTaskFunction, *args: ir.Expr) -> ir.Expr:
    """Call a function of `calls_text`: pointers to its arrays and arenas, and the number of the rTask."""
    return T.call_extern("void", _stub(function), *args)


def calls_text(functions: Iterable[RTaskFunction]) -> str:
    """The LLVM IR of the calls of a program's functions, which the module holds under their own names."""
    return "".join(_call(function) for function in {f.name: f for f in functions}.values())


def _call(function: RTaskFunction) -> str:
    pointers = len(function.dtypes) + len(function.scratch)
    types = ["ptr"] * pointers + ["i32"]
    parameters = [f"{dtype} %p{i}" for i, dtype in enumerate(types)]
    names = {"function": _quoted(function.name), "stub": _quoted(_stub(function))}
    return _CALL.format(**names, types=", ".join(types), parameters=", ".join(parameters))


def _quoted(name: str) -> str:
    """A name of LLVM IR: a function may be called anything."""
    return '@"' + "".join(chr(c) if chr(c) in _PLAIN else f"\\{c:02x}" for c in name.encode()) + '"'


def _stub(function: RTaskFunction) -> str:
    return f"rammer_call_{function.name}"
