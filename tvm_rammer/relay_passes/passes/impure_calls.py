"""A function that may raise an error has an effect: who calls it has one, too, and calls it outside of dataflow."""

from collections.abc import Collection, Iterator

import tvm
from tvm import relax
from tvm.ir import Call, GlobalVar

from ..bindings import body_blocks, leaves, rename, result_of


def with_impure(mod: tvm.IRModule, impure: Collection[GlobalVar]) -> tvm.IRModule:
    """Mark functions as impure, and all that call them.

    Parameters
    ----------
    mod : tvm.IRModule
        Is not changed.
    impure : collection of GlobalVar

    Returns
    -------
    tvm.IRModule
        In which no dataflow block holds a call of such a function.
    """
    callees = {var: _callees(func) for var, func in mod.functions_items() if isinstance(func, relax.Function)}
    marked, found = set[GlobalVar](), set(impure)
    while found:
        marked |= found
        found = {var for var, called in callees.items() if called & found} - marked
    made = mod.clone() if marked else mod
    for var in marked:
        made.update_func(var, _split(mod[var], marked))
    return made


def _callees(func: relax.Function) -> set[GlobalVar]:
    found: set[GlobalVar] = set()
    relax.analysis.post_order_visit(func, lambda e: found.add(e.op) if isinstance(e, Call) else None)
    return {op for op in found if isinstance(op, GlobalVar)}


def _split(func: relax.Function, impure: Collection[GlobalVar]) -> relax.Function:
    """An impure function, each of whose dataflow blocks is cut at the calls of other such functions."""
    blocks = [part for block in body_blocks(func) for part in _parts(block, impure)]
    block_of = {binding.var: number for number, (_, part) in enumerate(blocks) for binding in part}
    outside = set(leaves(result_of(func)))
    for number, (_, part) in enumerate(blocks):
        for binding in part:
            outside.update(leaf for leaf in leaves(binding.value) if block_of.get(leaf, number) != number)
    outside.update(binding.var for dataflow, part in blocks if not dataflow for binding in part)
    names = {var: relax.Var(var.name, var.ty) for var in outside if isinstance(var, relax.DataflowVar)}
    renamed = rename(func, blocks, names)
    return relax.Function(func.params, renamed.body, func.ret_ty, False, func.attrs)


def _parts(block: relax.BindingBlock, impure: Collection[GlobalVar]) -> Iterator[tuple[bool, list[relax.Binding]]]:
    """The bindings of a block in runs: whether they are dataflow, and which."""
    dataflow = isinstance(block, relax.DataflowBlock)
    run: list[relax.Binding] = []
    for binding in block.bindings:
        if dataflow and isinstance(binding.value, Call) and binding.value.op in impure:
            yield True, run
            yield False, [binding]
            run = []
        else:
            run.append(binding)
    yield dataflow, run
