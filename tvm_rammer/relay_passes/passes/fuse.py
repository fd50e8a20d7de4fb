"""TVM's FuseOps, in a time that grows with the number of operators.

For each operator FuseOps walks to the operator in which all uses of its result meet again, before it looks whether the
two can be fused. In a recurrent layer the uses of a state meet at the end of the model, so the walks are as long as the
model. A result that a product, a convolution or something opaque reads is fused with nothing that comes after it. Here
such a result is an output of its dataflow block while FuseOps runs: then it does not walk, and fuses the same.

So is a result that many operators take parts of, such as an image whose windows are put side by side: within one
function each of them would compute it anew. And so is what is read after a size got its name by a MatchCast, if it was
computed before it: FuseOps does not see that a function needs a size, and would call it before there is one. And so is
what is read after a call that writes a tensor, if it was computed before: fused, it would read what is written. And so
is what a function takes in any size, though its size is known by now: FuseTIR would take them for different tensors.
"""

import math
from collections import Counter
from collections.abc import Iterator

import tvm
from tvm import relax, tirx
from tvm.ir import Call
from tvm.tirx.buffer import BufferType

from ..bindings import (
    body_blocks,
    is_call,
    leaves,
    named_sizes,
    rename,
    result_of,
    rewrite_functions,
    static_shape,
    writes_a_tensor,
)
from ..module_pass import module_pass
from .bound_chains import INJECTIVE, INTO_RESULT, OPAQUE

MAX_DEPTH = 32
"""Operators that are fused into one function at most."""

MOST_PARTS = 3
"""Parts of a result that others in its function may take."""


def Fuse() -> tvm.transform.Pass:
    """Make the pass: FuseOps, at most `MAX_DEPTH` deep.

    TVM's own limit of 256 makes functions of thousands of characters in their names alone.
    """

    @module_pass("RammerFuse")
    def run(mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.IRModule:
        key = "relax.FuseOps.max_depth"
        config = {**ctx.config, key: min(int(ctx.config.get(key, MAX_DEPTH)), MAX_DEPTH)}
        marked = rewrite_functions(mod, lambda func: _with_outputs(mod, func))
        with tvm.transform.PassContext(ctx.opt_level, ctx.required_pass, ctx.disabled_pass, ctx.instruments, config):
            fused = relax.transform.FuseOps()(marked)
        return rewrite_functions(fused, _without_outputs)

    return run


def _with_outputs(mod: tvm.IRModule, func: relax.Function) -> relax.Function | None:
    """The function, in which what is read by operators that fuse with no producer is an output of its block."""
    unfused, parts = set(), Counter[relax.DataflowVar]()
    for binding, read in _reads(func):
        pattern = _pattern(mod, binding.value)
        if pattern in (INTO_RESULT, OPAQUE):
            unfused.update(read)
            continue
        unfused.update(_of_any_size(mod, binding.value))
        if pattern is not None and pattern <= INJECTIVE:
            parts.update(var for var in read if _elements(binding.var) < _elements(var))
    unfused.update(var for var, count in parts.items() if count > MOST_PARTS)
    unfused.update(_read_across(func))
    return _renamed(func, {var: relax.Var(var.name, var.ty) for var in unfused})


def _of_any_size(mod: tvm.IRModule, value: relax.Expr) -> Iterator[relax.DataflowVar]:
    """What a called function takes in any size, though its size is known."""
    callee = mod[value.args[0]] if is_call(value, ("relax.call_tir",)) else None
    if not isinstance(callee, tirx.PrimFunc) or not isinstance(value.args[1], relax.Tuple):
        return
    for argument, parameter in zip(value.args[1].fields, callee.params, strict=False):
        if isinstance(argument, relax.DataflowVar) and isinstance(parameter.ty, BufferType):
            known = static_shape(argument.ty) is not None
            if known and not all(isinstance(extent, tirx.IntImm) for extent in parameter.shape):
                yield argument


def _reads(func: relax.Function) -> Iterator[tuple[relax.Binding, set[relax.DataflowVar]]]:
    """Each binding of a function, with what it reads of its dataflow block."""
    for block in body_blocks(func):
        for binding in block.bindings:
            yield binding, {leaf for leaf in leaves(binding.value) if isinstance(leaf, relax.DataflowVar)}


def _read_across(func: relax.Function) -> Iterator[relax.DataflowVar]:
    """What is computed before a size gets its name, or before a tensor is written, and read behind it."""
    sizes, made, writes = set[relax.Var](), dict[relax.Expr, int](), 0
    for binding, read in _reads(func):
        yield from (var for var in read if made[var] < len(sizes) + writes)
        sizes |= named_sizes(binding)
        writes += writes_a_tensor(binding.value)
        made[binding.var] = len(sizes) + writes


def _elements(var: relax.Var) -> int:
    """How many elements a tensor has; 0 where that is not known."""
    shape = static_shape(var.ty)
    return 0 if shape is None else math.prod(shape)


def _pattern(mod: tvm.IRModule, value: relax.Expr) -> int | None:
    """How FuseOps takes a call; None for what is none."""
    if not is_call(value, ("relax.call_tir",)):
        return OPAQUE if isinstance(value, Call) else None
    callee = mod[value.args[0]]
    return int(callee.attrs.get("op_pattern", OPAQUE)) if isinstance(callee, tirx.PrimFunc) else None


def _without_outputs(func: relax.Function) -> relax.Function | None:
    """The function, in which only what is read outside of its block is an output."""
    blocks = body_blocks(func)
    outside = set(leaves(result_of(func)))
    inside: dict[relax.Var, int] = {}
    for number, block in enumerate(blocks):
        for binding in block.bindings:
            outside.update(leaf for leaf in leaves(binding.value) if inside.get(leaf, number) != number)
            if isinstance(block, relax.DataflowBlock) and not isinstance(binding.var, relax.DataflowVar):
                inside[binding.var] = number
    return _renamed(func, {var: relax.DataflowVar(var.name, var.ty) for var in inside if var not in outside})


def _renamed(func: relax.Function, names: dict[relax.Expr, relax.Expr]) -> relax.Function | None:
    """The function with other Vars; None where there are none."""
    if not names:
        return None
    blocks = [(isinstance(block, relax.DataflowBlock), list(block.bindings)) for block in body_blocks(func)]
    return rename(func, blocks, names)
