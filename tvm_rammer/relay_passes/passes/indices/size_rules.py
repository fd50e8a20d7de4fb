"""Which sizes have to agree, by the operator: each rule gives a call tensors whose sizes were compared."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm_ffi
from tvm import relax, tirx
from tvm.ir import Call

from ...bindings import dtype_of, static_shape
from .comparing import Comparing, is_known
from .index_guard import Relation

_ELEMENTWISE = frozenset(
    f"relax.{name}"
    for name in (
        "add", "subtract", "multiply", "divide", "floor_divide", "floor_mod", "mod", "power", "maximum", "minimum",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
        "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "where",
    )
)  # fmt: skip


def _fitting(comparing: Comparing, tensors: Sequence[relax.Expr], kept: int = 0) -> list[relax.Expr]:
    """Tensors that fit each other, but for the last `kept` axes. Those that turn out to have 1 of something repeat it.

    Not the first of unknown sizes: it is that of the result.
    """
    sized = [comparing.sizes(tensor) for tensor in tensors]
    known = [s for s in sized if s is not None]
    if len(known) < len(tensors) or len(tensors) < 2:
        return list(tensors)
    wanted: list[dict[int, Any]] = [{} for _ in known]
    for place in range(kept + 1, 1 + max(len(sizes) for _, sizes in known)):
        here = {n: sizes[-place] for n, (_, sizes) in enumerate(known) if place <= len(sizes)}
        long = {n: size for n, size in here.items() if not _is_one(size)}
        first = next((size for size in long.values() if is_known(size)), next(iter(long.values()), None))
        for n in long:
            wanted[n][len(known[n][1]) - place] = first
    return [comparing.like(*one, want, Relation.ONE_OR_EQUAL) for one, want in zip(known, wanted, strict=True)]


def _elementwise(comparing: Comparing, call: Call) -> Call:
    return _with(call, _fitting(comparing, call.args))


def _matmul(comparing: Comparing, call: Call) -> Call:
    left, right = (comparing.sizes(arg) for arg in call.args)
    if left is None or right is None:
        return call
    at = max(0, len(right[1]) - 2)
    a, b = left[1][-1], right[1][at]
    inner = a if is_known(a) else b
    factors = [comparing.like(*left, {len(left[1]) - 1: inner}), comparing.like(*right, {at: inner})]
    return _with(call, _fitting(comparing, factors, 2) if min(len(left[1]), len(right[1])) > 1 else factors)


def _concat(comparing: Comparing, call: Call) -> Call:
    if not isinstance(call.args[0], relax.Tuple):
        return call
    sized = [comparing.sizes(field) for field in call.args[0].fields]
    known = [s for s in sized if s is not None]
    ranks = {len(sizes) for _, sizes in known}
    if len(known) < len(sized) or len(ranks) != 1:
        return call
    (rank,) = ranks
    others = [axis for axis in range(rank) if axis != int(call.attrs.axis or 0) % rank]
    wanted = {}
    for axis in others:
        here = [sizes[axis] for _, sizes in known]
        wanted[axis] = next(filter(is_known, here), here[0])
    return _with(call, [relax.Tuple([comparing.like(*one, wanted) for one in known])])


def _einsum(comparing: Comparing, call: Call) -> Call:
    terms = str(call.attrs.subscripts).replace(" ", "").split("->")[0].split(",")
    fields = call.args[0].fields if isinstance(call.args[0], relax.Tuple) else ()
    known = [s for s in map(comparing.sizes, fields) if s is not None]
    if len(known) < len(terms):
        return call
    axes = [_axes_of(term, len(sizes)) for term, (_, sizes) in zip(terms, known, strict=True)]
    extents: dict[str, Any] = {}
    for letters, (_, sizes) in zip(axes, known, strict=True):
        for axis, letter in letters.items():
            if letter not in extents or (is_known(sizes[axis]) and not is_known(extents[letter])):
                extents[letter] = sizes[axis]
    made = [
        comparing.like(*one, {axis: extents[letter] for axis, letter in letters.items()})
        for one, letters in zip(known, axes, strict=True)
    ]
    return _with(call, [relax.Tuple(made)])


def _reshape(comparing: Comparing, call: Call) -> Call:
    """The number of elements stays: of the tensor as a row it is compared."""
    sized, shape = comparing.sizes(call.args[0]), call.args[1]
    if sized is None or not isinstance(shape, relax.ShapeExpr):
        return call
    if any(map(_divides, shape)):
        shape = comparing.computed_shape(shape)
    before, after = (_product(sizes) for sizes in (sized[1], list(shape)))
    if comparing.equal(before, after) or (is_known(before) and is_known(after)):
        return _with(call, [sized[0], shape])
    flat = relax.TensorType([before], call.ty.dtype)
    row = comparing.bind(relax.op.reshape(sized[0], flat.shape), flat)
    return _with(call, [comparing.guarded(row, [(before, after)], [after]), shape])


def _broadcast_to(comparing: Comparing, call: Call) -> Call:
    """As ONNX's Expand has it: a target of 1 leaves an extent as it is."""
    sized, shape = comparing.sizes(call.args[0]), call.args[1]
    if sized is None or not isinstance(shape.ty, relax.ShapeType) or shape.ty.ndim < len(sized[1]):
        return call
    tensor, sizes = sized
    named, target = comparing.named_shape(shape)
    pairs, made = [], list(target)
    for axis, size in enumerate(sizes, len(target) - len(sizes)):
        if not _is_one(size) and not comparing.equal(size, target[axis]):
            pairs.append((size, target[axis]))
            made[axis] = size
    if not pairs:
        return _with(call, [tensor, shape if named.same_as(shape) else relax.ShapeExpr(target)])
    return _with(call, [comparing.guarded(tensor, pairs, sizes, Relation.EQUAL_OR_ONE), relax.ShapeExpr(made)])


def _scatter_elements(comparing: Comparing, call: Call) -> Call:
    data, indices, updates = call.args
    sized, other = comparing.sizes(indices), comparing.sizes(updates)
    if sized is None or other is None or len(sized[1]) != len(other[1]):
        return call
    return _with(call, [data, sized[0], comparing.like(*other, dict(enumerate(sized[1])))])


def _topk(comparing: Comparing, call: Call) -> Call:
    """There are as many elements as are asked for."""
    sized = comparing.sizes(call.args[0])
    if sized is None or is_known(sized[1][int(call.attrs.axis)]) or int(call.attrs.k) < 1:
        return call
    count = tirx.IntImm("int64", int(call.attrs.k))
    pairs = [(count, sized[1][int(call.attrs.axis)])]
    return _with(call, [comparing.guarded(sized[0], pairs, sized[1], Relation.AT_MOST)])


def _tensor_to_shape(comparing: Comparing, call: Call) -> Call:
    """All shapes that the data say go through here; what they must fit is compared where they are used.

    TVM's own lowering would give each size a second name, and functions that take both names for one would not fit.
    """
    extents = call.args[0]
    count = static_shape(extents.ty)
    if count is None or dtype_of(extents.ty) != "int64":
        return call
    possible = comparing.possible(extents, count[0])
    return relax.op.call_pure_packed("vm.builtin.tensor_to_shape", possible, ty_args=[relax.ShapeType(ndim=count[0])])


def _dynamic_strided_slice(comparing: Comparing, call: Call) -> Call:
    """Steps that only the data know; what a slice reads is clamped, whatever its bounds are."""
    *others, steps = call.args
    count = static_shape(steps.ty)
    if count is None or dtype_of(steps.ty) != "int64":
        return call
    return _with(call, [*others, comparing.steps(steps, count[0])])


def _with(call: Call, args: Sequence[relax.Expr]) -> Call:
    same = all(new.same_as(old) or _same_fields(new, old) for new, old in zip(args, call.args, strict=True))
    return call if same else Call(call.op, list(args), call.attrs, call.ty_args, ret_ty=call.ty)


def _axes_of(term: str, rank: int) -> dict[int, str]:
    """The letter of each axis of an operand of an Einsum, but for those that an ellipsis stands for."""
    before, dots, after = term.partition("...")
    first = rank - len(after) if dots else 0
    return dict(enumerate(before)) | dict(enumerate(after, first) if dots else ())


def _is_one(size: Any) -> bool:
    return is_known(size) and int(size) == 1


def _divides(size: Any) -> bool:
    """Whether an extent has a quotient by something that only the data say."""
    found: list[bool] = []

    def visit(node: tirx.FloorDiv | tirx.FloorMod | tirx.Div | tirx.Mod) -> None:
        found.append(not is_known(node.b))

    kinds = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
    tvm_ffi.structural_walk(size, [(kind, visit) for kind in kinds], order="pre")
    return any(found)


def _same_fields(new: relax.Expr, old: relax.Expr) -> bool:
    both = isinstance(new, relax.Tuple) and isinstance(old, relax.Tuple)
    return both and all(a.same_as(b) for a, b in zip(new.fields, old.fields, strict=True))


def _product(sizes: Sequence[Any]) -> Any:
    count: Any = tirx.IntImm("int64", 1)
    for size in sizes:
        count = count * size
    return count


RULES: Mapping[str, Callable[[Comparing, Call], Call]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    "relax.matmul": _matmul,
    "relax.concat": _concat,
    "relax.dynamic_strided_slice": _dynamic_strided_slice,
    "relax.einsum": _einsum,
    "relax.reshape": _reshape,
    "relax.broadcast_to": _broadcast_to,
    "relax.scatter_elements": _scatter_elements,
    "relax.tensor_to_shape": _tensor_to_shape,
    "relax.topk": _topk,
}
"""By the name of an operator of Relax."""
