"""Functions with addresses: TVM inlines the functions of imported LLVM IR into their callers, and keeps no others.

So what the workers need the address of is a function of TIR, and the text that takes the addresses is LLVM IR.
"""

from collections.abc import Mapping, Sequence

import tvm
from tvm import tirx
from tvm.ir import GlobalVar, PrimType
from tvm.script import tirx as T

_PLAIN_FUNCTION = 2
"""Calling convention without TVM's packed interface, visible outside the module."""

_ENTRIES = """
declare i32 @{name}_walk(ptr, i32, ptr, ptr)
declare i32 @{name}_help(ptr)
declare i32 @{name}_give_pool(ptr, ptr, i32, ptr)
@{name}_entries = internal constant [3 x ptr] [ptr @{name}_walk, ptr @{name}_help, ptr @{name}_give_pool]
"""


def entries_text(name: str) -> str:
    """`Entries` of workers.h for a program, as LLVM IR."""
    return _ENTRIES.format(name=name)


def pool_entries(name: str) -> dict[str, tirx.PrimFunc]:
    """The entries that do not depend on the program: what a helper thread runs, and what tells others of the pool."""
    helper, self, arguments, result = (tirx.Var(n, "handle") for n in ("helper", "self", "arguments", "result"))
    count = tirx.Var("count", "int32")
    helped = T.call_extern("void", "rammer_help", helper)
    given = T.call_extern("int32", "rammer_give_pool", self, arguments, count, result)
    return {
        f"{name}_help": function_of([helper], [tirx.Evaluate(helped)]),
        f"{name}_give_pool": function_of([self, arguments, count, result], [tirx.Evaluate(given)]),
    }


def function_of(params: Sequence[tirx.Var], statements: Sequence[tirx.Stmt]) -> tirx.PrimFunc:
    """A function that returns zero: TIR's code generator can return nothing else."""
    zero = tirx.Return(tirx.IntImm("int32", 0))
    body = tirx.SeqStmt([*statements, zero]) if statements else zero
    return tirx.PrimFunc(list(params), body, ret_type=PrimType("int32"))


def plain_functions(functions: Mapping[str, tirx.PrimFunc]) -> dict[GlobalVar, tirx.PrimFunc]:
    """Functions that LLVM IR calls by their names, under the variables that a module needs for them."""
    attrs = {"calling_conv": _PLAIN_FUNCTION, "s_tir": True, "tirx.is_scheduled": True}
    named = {name: func.with_attr({"global_symbol": name, **attrs}) for name, func in functions.items()}
    return {tvm.IRModule({name: func}).get_global_var(name): func for name, func in named.items()}
