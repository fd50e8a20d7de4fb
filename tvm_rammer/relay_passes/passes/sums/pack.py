"""Constant matrices as the tiles of sums read them: columns of one vector side by side, row after row.

A vector's columns of a matrix are as far apart as its rows are long: each lies in another page, and if that is a power
of two, all of them meet in few sets of a cache.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import partial

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call, GlobalVar, TensorLoad
from tvm.tirx.buffer import BufferType

from ...bindings import body_blocks, dtype_of, is_call, is_const, rewrite_bindings, rewrite_functions, typed
from ...module_pass import module_pass

LEAST_PACKED = 1 << 16
"""Elements of a matrix: a smaller one stays in a cache of one core."""


def PackMatrices() -> tvm.transform.Pass:
    """Make the pass that packs constant matrices which functions in tiles read in vectors of a column block.

    It wants calls by `call_tir`, before they are lowered, and tiles as `TileSums` writes them.
    """
    return _pack_matrices


@module_pass("PackMatrices")
def _pack_matrices(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    calls = _calls_of(mod)
    packed: dict[GlobalVar, tuple[GlobalVar, Mapping[int, int]]] = {}
    made = mod.clone()
    for var, func in mod.functions_items():
        if isinstance(func, tirx.PrimFunc) and var in calls and "tirx.is_scheduled" not in (func.attrs or {}):
            columns = {n: count for n in _constant_in_all(calls[var]) if (count := _columns_of(func, func.params[n]))}
            if columns:
                other = _reading_packed(func, columns)
                del made[var]
                packed[var] = typed(GlobalVar(var.name_hint), other.ty), columns
                made.update_func(packed[var][0], other)
    if not packed:
        return mod
    return rewrite_functions(made, partial(rewrite_bindings, rewrite=partial(_with_packed, packed, {})))


def _calls_of(mod: tvm.IRModule) -> dict[GlobalVar, list[Call]]:
    """The calls of each function whose every use is one among the outer bindings."""
    calls: dict[GlobalVar, list[Call]] = defaultdict(list)
    uses: Counter[GlobalVar] = Counter()
    for func in mod.functions.values():
        tvm_ffi.structural_walk(func, [(GlobalVar, lambda var: uses.update([var]))], order="pre")
        if isinstance(func, relax.Function):
            for block in body_blocks(func):
                for binding in block.bindings:
                    if is_call(binding.value, ("relax.call_tir",)):
                        calls[binding.value.args[0]].append(binding.value)
    return {var: found for var, found in calls.items() if uses[var] == len(found)}


def _constant_in_all(calls: list[Call]) -> list[int]:
    """Which inputs are constants in all calls."""
    inputs = [call.args[1].fields for call in calls]
    return [n for n, each in enumerate(zip(*inputs, strict=True)) if all(map(is_const, each))]


def _columns_of(func: tirx.PrimFunc, matrix: tirx.Var) -> int:
    """How many columns of a matrix are read side by side wherever it is read; 0 where it is not to be packed."""
    extents = matrix.shape if isinstance(matrix.ty, BufferType) else ()
    shape = [int(n) if isinstance(n, tirx.IntImm) else 0 for n in extents]
    if len(shape) != 2 or shape[0] * shape[1] < LEAST_PACKED:
        return 0
    lanes: dict[tirx.Var, int] = {}
    loads: list[TensorLoad] = []
    uses: list[tirx.Var] = []

    def vector(loop: tirx.For) -> None:
        if loop.kind == tirx.ForKind.VECTORIZED and isinstance(loop.extent, tirx.IntImm):
            lanes[loop.loop_var] = int(loop.extent)

    visitors = [(tirx.For, vector), (TensorLoad, loads.append), (tirx.Var, uses.append)]
    tvm_ffi.structural_walk(func.body, visitors, order="pre")
    reads = [load for load in loads if load.source.same_as(matrix)]
    if not reads or sum(var.same_as(matrix) for var in uses) != len(reads):
        return 0
    counts = {_columns_at(load, lanes) for load in reads}
    return counts.pop() if len(counts) == 1 else 0


def _columns_at(load: TensorLoad, lanes: Mapping[tirx.Var, int]) -> int:
    """How many columns a block has that a load reads a vector of; 0 where it reads something else, or all columns."""
    place = _place(load)
    if place is None:
        return 0
    _, lane, first, columns = place
    fits = lane in lanes and first + lanes[lane] <= columns < int(load.source.shape[1])
    return columns if fits else 0


def _place(load: TensorLoad) -> tuple[tirx.Var, tirx.Var, int, int] | None:
    """A block of columns as `TileSums` reads it, the vector's variable, where that begins, and the block's columns."""
    match load.indices[1]:
        case tirx.Add(
            a=tirx.Mul(a=tirx.Var() as block, b=tirx.IntImm(value=columns))
            | tirx.Min(a=tirx.Mul(a=tirx.Var() as block, b=tirx.IntImm(value=columns))),
            b=within,
        ):
            match within:
                case tirx.Var():
                    return block, within, 0, int(columns)
                case tirx.Add(a=tirx.Var() as lane, b=tirx.IntImm(value=first)):
                    return block, lane, int(first), int(columns)
    return None


def _reading_packed(func: tirx.PrimFunc, columns: Mapping[int, int]) -> tirx.PrimFunc:
    """The function, which reads some inputs as `_packed` makes them."""
    params = list(func.params)
    for n, count in columns.items():
        rows, width = (int(extent) for extent in params[n].shape)
        params[n] = tirx.decl_buffer((-(-width // count), rows, count), str(params[n].dtype), params[n].name)
    others = {func.params[n]: params[n] for n in columns}

    def load(node: TensorLoad) -> TensorLoad:
        place = _place(node) if node.source in others else None
        if place is None:
            return node
        block, lane, first, _ = place
        return tirx.BufferLoad(others[node.source], [block, node.indices[0], lane + first])

    body = tvm_ffi.structural_map(func.body, [(TensorLoad, load)], order="post")
    return tirx.PrimFunc(params, body, func.ret_type, func.attrs)


def _with_packed(
    packed: Mapping[GlobalVar, tuple[GlobalVar, Mapping[int, int]]],
    constants: dict[tuple[relax.Expr, int], relax.Expr],
    binding: relax.Binding,
    _make: type[relax.Var],
) -> list[relax.Binding] | None:
    call = binding.value
    if not is_call(call, ("relax.call_tir",)) or call.args[0] not in packed:
        return None
    (function, columns), inputs = packed[call.args[0]], list(call.args[1].fields)
    for n, count in columns.items():
        key = inputs[n], count
        if key not in constants:
            constants[key] = _packed(inputs[n], count)
        inputs[n] = constants[key]
    tensors = relax.Tuple(inputs)
    typed(tensors, tvm.ir.TupleType([each.ty for each in inputs]))
    made = Call(call.op, [function, tensors, *call.args[2:]], call.attrs, call.ty_args, ret_ty=call.ty)
    return [relax.VarBinding(binding.var, made)]


def _packed(matrix: relax.Expr, columns: int) -> relax.Expr:
    """Blocks of columns; the last one ends with the matrix, and may begin within the one before."""
    array = matrix.value.numpy()
    width = array.shape[1]
    begins = [min(begin, width - columns) for begin in range(0, width, columns)]
    blocks = np.stack([array[:, begin : begin + columns] for begin in begins])
    return relax.const(blocks, dtype_of(matrix.ty))
