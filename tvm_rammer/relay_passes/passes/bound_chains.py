"""Bound how much fusion puts into one function.

What is fused is inlined where it is read, so a value that is read twice is there twice, and a chain of n squares is 2^n
products. An operator may read an element more than once, too: a leaky rectifier does so three times. What a condition
reads costs more still, since TVM's simplifier looks at it again for each branch. And a kernel has exp, tanh,
logarithms, angles and the like as arithmetic within bound variables; TVM's passes visit what is in one twice, so that a
chain of n such functions in one kernel takes 2^n as long to compile.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, Expr, GlobalVar, TensorLoad, Tuple

from ..bindings import add_function, body_blocks, is_call, rebuild
from ..module_pass import module_pass

MAX_NESTED = 2
"""Functions within one another: as in the cell of an LSTM, tanh of a sum of sigmoids."""

MAX_COPIES = 64
"""So often is a value in a function that only one of its operators reads from outside."""

CONDITION = 5
"""So many copies does one in the condition of a selection count as: what TVM's simplifier takes for it, measured."""

OPAQUE = 8
"""TVM's `op_pattern` of what is never fused."""

INJECTIVE = 2
"""TVM's `op_pattern` of what computes each element of others: slices, transpositions, concatenations."""

INTO_RESULT = 4
"""TVM's `op_pattern` of products and convolutions: only what comes after them is fused with them."""

_FUSES_WITH_PRODUCERS = (0, 1, INJECTIVE)
"""Patterns of functions that are fused into what comes before: elementwise, with broadcasting, injective."""

_LONG = ("acosh", "asinh", "atanh", "cos", "log1p", "sin", "tan")
"""Functions whose arithmetic has many bound variables: one of them is as deep as two others."""

_SHORT = (
    "acos",
    "asin",
    "atan",
    "cosh",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "log",
    "log10",
    "log2",
    "pow",
    "sigmoid",
    "sinh",
    "tanh",
)

_FUNCTIONS = {f"tirx.{name}": MAX_NESTED for name in _LONG} | {f"tirx.{name}": 1 for name in _SHORT}


def BoundChains() -> tvm.transform.Pass:
    """Make the pass; it comes after TVM's AnnotateTIROpPattern and before its FuseOps."""
    return _bound_chains


@module_pass("RammerBoundChains")
def _bound_chains(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    links = {
        var: _Link(_levels(func), _reads(func))
        for var, func in mod.functions_items()
        if isinstance(func, tirx.PrimFunc) and int(func.attrs.get("op_pattern", OPAQUE)) in _FUSES_WITH_PRODUCERS
    }
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, relax.Function) and isinstance(func.body, relax.SeqExpr):
            changed = _bounded(made, func, links)
            if changed is not None:
                made.update_func(var, changed)
    return made


@dataclass(frozen=True, slots=True)
class _Link:
    """What a function adds to a chain: levels of nested functions, and how often it holds each of its parameters."""

    levels: int
    reads: tuple[int, ...]


def _levels(func: tirx.PrimFunc) -> int:
    found: list[int] = [0]
    tvm_ffi.structural_walk(
        func.body, [(Call, lambda call: found.append(_FUNCTIONS.get(getattr(call.op, "name", ""), 0)))], order="pre"
    )
    return max(found)


def _reads(func: tirx.PrimFunc) -> tuple[int, ...]:
    """How often each parameter stands in the results once the function's blocks are inlined into one another."""
    held: dict[tirx.Var, Counter[tirx.Var]] = {param: Counter({param: 1}) for param in func.params}

    def store(node: tirx.BufferStore) -> None:
        total: Counter[tirx.Var] = Counter()
        for buffer, count in _loads(node.value).items():
            total.update({param: count * copies for param, copies in held.get(buffer, {}).items()})
        held[node.buffer] = total

    tvm_ffi.structural_walk(func.body, [(tirx.BufferStore, store)], order="pre")
    written = [held[param] for param in func.params if held[param].get(param) != 1]
    return tuple(max((counts[param] for counts in written), default=1) for param in func.params)


def _loads(value: Expr) -> Counter[tirx.Var]:
    """How often each buffer is read in an expression, with what conditions cost."""
    found: Counter[tirx.Var] = Counter()

    def condition(node: tirx.Select) -> None:
        found.update({buffer: (CONDITION - 1) * count for buffer, count in _loads(node.condition).items()})

    load = (TensorLoad, lambda node: found.update([node.source]))
    tvm_ffi.structural_walk(value, [load, (tirx.Select, condition)], order="pre")
    return found


def _bounded(mod: tvm.IRModule, func: relax.Function, links: Mapping[GlobalVar, _Link]) -> relax.Function | None:
    """The function with calls of what is not fused where a chain gets too long; None where none does."""
    depth: dict[relax.Expr, int] = {}
    copies: dict[relax.Expr, int] = {}
    apart: dict[GlobalVar, GlobalVar] = {}
    blocks = []
    for block in body_blocks(func):
        bindings: list[relax.Binding] = []
        for binding in block.bindings:
            call = binding.value
            link = links.get(call.args[0]) if is_call(call, ("relax.call_tir",)) else None
            if link is not None:
                read = call.args[1].fields if isinstance(call.args[1], Tuple) else [call.args[1]]
                depth[binding.var] = max((depth.get(value, 0) for value in read), default=0) + link.levels
                copies[binding.var] = max(
                    1, sum(copies.get(value, 0) * count for value, count in zip(read, link.reads, strict=False))
                )
            if depth.get(binding.var, 0) > MAX_NESTED or copies.get(binding.var, 0) > MAX_COPIES:
                depth[binding.var] = copies[binding.var] = 0
                callee = call.args[0]
                if callee not in apart:
                    apart[callee] = _never_fused(mod, callee)
                other = Call(call.op, [apart[callee], *call.args[1:]], call.attrs, call.ty_args, ret_ty=call.ty)
                binding = relax.VarBinding(binding.var, other)
            bindings.append(binding)
        blocks.append((isinstance(block, relax.DataflowBlock), bindings))
    return rebuild(func, blocks) if apart else None


def _never_fused(mod: tvm.IRModule, callee: GlobalVar) -> GlobalVar:
    """A copy of a function that is fused with nothing."""
    return add_function(mod, f"{callee.name_hint}_apart", mod[callee].with_attr("op_pattern", OPAQUE))
