"""Blocks name all that they read of a tensor which an operator is given twice.

TVM takes two inputs that are the same tensor for one, and of the parts that a block reads of it names one: a
concatenation of a tensor with itself claims to read only where the last piece is. No schedule of such a block can be
trusted, so nothing but stock TVM would compute it.
"""

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad

from ..bindings import rewrite_prim_funcs
from ..module_pass import module_pass


def ClaimReads() -> tvm.transform.Pass:
    """Make the pass; it works on fused functions that nobody scheduled."""
    return _claim_reads


@module_pass("RammerClaimReads")
def _claim_reads(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    def claiming(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
        body = tvm_ffi.structural_map(func.body, [(s_tir.SBlock, _claiming)], order="post")
        return None if body.same_as(func.body) else func.with_body(body)

    return rewrite_prim_funcs(mod, claiming)


def _claiming(block: s_tir.SBlock) -> s_tir.SBlock:
    """The block; where it loads a tensor at more places than it names, all of its reads are found anew."""
    places: dict[tirx.Var, list[list[tirx.Expr]]] = {}

    def note(load: TensorLoad) -> None:
        known = places.setdefault(load.source, [])
        if not any(tvm_ffi.structural_equal(load.indices, other) for other in known):
            known.append(load.indices)

    tvm_ffi.structural_walk(block.body, [(TensorLoad, note)], order="pre")
    named = [region.source for region in block.reads]
    if all(len(some) < 2 or named.count(source) != 1 for source, some in places.items()):
        return block
    reads, _, opaque = s_tir.analysis.get_sblock_access_region(block, {source: source for source in places})
    if len(opaque):
        return block
    return s_tir.SBlock(
        block.iter_vars, reads, block.writes, block.name_hint, block.body, block.init, block.alloc_buffers,
        block.match_buffers, block.annotations,
    )  # fmt: skip
