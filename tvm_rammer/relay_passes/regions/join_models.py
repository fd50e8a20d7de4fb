"""Several models in one module, so that one plan can hold them all."""

from collections.abc import Sequence

import tvm
from tvm import relax

from ...errors import ModelError
from ..bindings import body_blocks, leaves, result_of
from .partition import Region


def join_models(mods: Sequence[tvm.IRModule]) -> tvm.IRModule:
    """Make a module whose "main" takes the inputs of all models, and returns a tuple of their results.

    Parameters
    ----------
    mods : sequence of tvm.IRModule
        As `load_model` returns them; one may be given twice.

    Raises
    ------
    ModelError
        A model has functions besides "main", or its "main" is no straight line of pure calls.
    """
    params: list[relax.Var] = []
    bindings: list[relax.Binding] = []
    results: list[relax.Expr] = []
    for number, mod in enumerate(mods):
        if len(mod.functions) != 1:
            names = ", ".join(sorted(v.name_hint for v in mod.get_global_vars()))
            raise ModelError(f"model {number} has the functions {names}; only models of one function can be joined")
        main = relax.utils.copy_with_new_vars(mod["main"])
        blocks = body_blocks(main)
        if not all(isinstance(block, relax.DataflowBlock) for block in blocks):
            raise ModelError(f"model {number} has control flow or calls with effects; compile it by itself")
        params += main.params
        bindings += [binding for block in blocks for binding in block.bindings]
        results.append(result_of(main))
    # The result itself is bound outside of the block: only its parts leave it.
    body = relax.SeqExpr([relax.DataflowBlock(bindings)], relax.Tuple(results))
    joined = relax.Function(params, body, relax.TupleType([r.ty for r in results]))
    module = tvm.IRModule({"main": joined.with_attr("global_symbol", "main")})
    return relax.transform.Normalize()(module)


def models_of(mod: tvm.IRModule, region: Region, num_params: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Which operators of a region belong to which of the joined models.

    Parameters
    ----------
    mod : tvm.IRModule
        In which the region was found.
    region : Region
    num_params : sequence of int
        How many parameters of "main" each model has.

    Returns
    -------
    tuple of tuple of int
        For each model its operators, by their positions in `region.graph`. What depends on no input is the first's.
    """
    owner: dict[relax.Var, int] = {}
    numbers = [number for number, count in enumerate(num_params) for _ in range(count)]
    owner.update(zip(mod["main"].params, numbers, strict=True))
    for block in body_blocks(mod["main"]):
        for binding in block.bindings:
            read = (owner.get(leaf) for leaf in leaves(binding.value) if isinstance(leaf, relax.Var))
            owner[binding.var] = max((n for n in read if n is not None), default=0)
    found: list[list[int]] = [[] for _ in num_params]
    for position, var in enumerate(region.bindings):
        found[owner[var]].append(position)
    return tuple(tuple(operators) for operators in found)
