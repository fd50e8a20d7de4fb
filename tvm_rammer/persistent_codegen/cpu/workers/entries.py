"""Functions with addresses: TVM inlines the functions of imported LLVM IR into their callers, and keeps no others.

So what the workers need the address of is a function of TIR, and the text that takes the addresses is LLVM IR.
"""

from collections.abc import Mapping, Sequence

import tvm
from tvm import tirx
from tvm.ir import GlobalVar, PrimType
from tvm.script import tirx as T

PLAIN_FUNCTION = 2
"""Calling convention that TVM leaves as it is on a CPU: no packed interface, and visible outside. LLVM IR of ours could
not declare a private function."""

MAKE = "rammer_entry_make"
"""The function that makes the pool, or finds it, and writes where it is."""

ENTRIES = f"""
declare i32 @rammer_entry_run(ptr, ptr, ptr, ptr, i32)
declare i32 @rammer_entry_ring(ptr)
declare i32 @rammer_entry_help(ptr)
declare i32 @rammer_entry_give_pool(ptr, ptr, i32, ptr)
declare i32 @{MAKE}(ptr)
@rammer_entries = internal constant [4 x ptr] [
  ptr @rammer_entry_run, ptr @rammer_entry_ring, ptr @rammer_entry_help, ptr @rammer_entry_give_pool
]
@rammer_maker = hidden global ptr @{MAKE}
define internal void @rammer_make(ptr %pool) {{
  call void @rammer_make_pool(ptr %pool, ptr @rammer_entries)
  ret void
}}
"""
"""`Entries` of workers.h, and the maker that client.c asks for, as LLVM IR."""

_ENTRIES = {
    "rammer_entry_run": ("rammer_walk_all", ("handle", "handle", "handle", "handle", "int32")),
    "rammer_entry_ring": ("rammer_ring", ("handle",)),
    "rammer_entry_help": ("rammer_help", ("handle",)),
    "rammer_entry_give_pool": ("rammer_give_pool", ("handle", "handle", "int32", "handle")),
    MAKE: ("rammer_make", ("handle",)),
}
"""For each function what it calls, and the types of its parameters."""


def entries() -> dict[GlobalVar, tirx.PrimFunc]:
    """The functions whose addresses `ENTRIES` takes."""
    return plain_functions({name: _entry(callee, types) for name, (callee, types) in _ENTRIES.items()})


def _entry(callee: str, types: Sequence[str]) -> tirx.PrimFunc:
    params = [tirx.Var(f"p{i}", dtype) for i, dtype in enumerate(types)]
    return function_of(params, [tirx.Evaluate(T.call_extern("void", callee, *params))])


def function_of(params: Sequence[tirx.Var], statements: Sequence[tirx.Stmt]) -> tirx.PrimFunc:
    """A function that returns zero: TIR's code generator can return nothing else."""
    zero = tirx.Return(tirx.IntImm("int32", 0))
    return tirx.PrimFunc(list(params), tirx.SeqStmt([*statements, zero]), ret_type=PrimType("int32"))


def plain_functions(functions: Mapping[str, tirx.PrimFunc]) -> dict[GlobalVar, tirx.PrimFunc]:
    """Functions that LLVM IR calls by their names, under the variables that a module needs for them."""
    attrs = {"calling_conv": PLAIN_FUNCTION, "s_tir": True, "tirx.is_scheduled": True}
    named = {name: func.with_attr({"global_symbol": name, **attrs}) for name, func in functions.items()}
    return {tvm.IRModule({name: func}).get_global_var(name): func for name, func in named.items()}
