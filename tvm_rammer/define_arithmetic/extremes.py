"""Largest and smallest numbers on a CPU: NaN where either is NaN."""

import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from .values import equals_itself, has_bits_of_number, is_float, is_number, repeated, scalar


def larger(old: Expr, new: Expr) -> Expr:
    """The larger one of two numbers; the old one where the new one is none. A maximum would be NaN then."""
    return tirx.Select(new > old, new, old)


def extreme(node: tirx.Max | tirx.Min) -> Expr:
    """On x86 and by LLVM's choice, the second operand remains where either is NaN: only the first needs a test.

    That is a constant, or else what can be repeated at no cost; rather the first one, an accumulator, than an element:
    LLVM takes exponential time for a chain of tests of the same number, and, where the other operand has branches, for
    any chain of tests that it knows to be such: so their bits are looked at.
    """
    if not is_float(node):
        return node
    first, second = node.a, node.b
    if is_number(second) or (not _is_plain(first) and _is_plain(second)):
        first, second = second, first
    if is_number(first):
        return type(node)(first, second)
    test = equals_itself if _is_plain(second) else has_bits_of_number
    return repeated(lambda one: tirx.Select(test(one), type(node)(one, second), one), first)


LONG_CHAIN = 9
"""An extreme of more numbers than this is one instruction of LLVM's a number, rather than a test and a choice: choices
of 14, in two loops, took LLVM 14 s, and of 15 minutes."""


def with_long_extremes(body: tirx.Stmt) -> tirx.Stmt:
    """Code in which long reductions to a largest or smallest number use LLVM's own operators, which let NaN through.

    LLVM takes exponential time for a chain of choices that is carried around a loop, which unrolling makes of such a
    reduction (it looks for checksums there); and it can only make vectors of the operator. For few numbers the
    operator is slower on x86, by what it takes to tell 0 from -0.
    """
    stores: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(body, [(tirx.BufferStore, lambda n: stores.append(n))], order="pre")
    if not any(map(_is_extreme, stores)):
        return body
    counts = _reductions(body)

    def store(node: tirx.BufferStore) -> tirx.BufferStore:
        if counts.get(node, 1) <= LONG_CHAIN:
            return node
        name = "llvm.maximum" if isinstance(node.value, tirx.Max) else "llvm.minimum"
        chosen = tirx.call_llvm_pure_intrin(str(node.value.ty.dtype), name, node.value.a, node.value.b)
        return tirx.BufferStore(node.buffer, chosen, node.indices)

    return tvm_ffi.structural_map(body, [(tirx.BufferStore, store)], order="post")


def _is_extreme(node: tirx.BufferStore) -> bool:
    """Whether a store keeps the larger or the smaller of what is there and another number."""
    value = node.value
    if not isinstance(value, tirx.Max | tirx.Min) or scalar(value) not in ("float32", "float64"):
        return False
    return any(isinstance(part, TensorLoad) and part.source.same_as(node.buffer) for part in (value.a, value.b))


def _reductions(body: tirx.Stmt) -> dict[tirx.BufferStore, int]:
    """How often each such store writes to one place: the product of the loops that its indices do not depend on."""
    counts: dict[tirx.BufferStore, int] = {}

    def loop(node: tirx.For) -> None:
        times = int(node.extent) if isinstance(node.extent, tirx.IntImm) else LONG_CHAIN + 1

        def store(inner: tirx.BufferStore) -> None:
            if not _is_extreme(inner):
                return
            used = [var for index in inner.indices for var in tirx.analysis.undefined_vars(index)]
            if not any(node.loop_var.same_as(var) for var in used):
                counts[inner] = counts.get(inner, 1) * times

        tvm_ffi.structural_walk(node.body, [(tirx.BufferStore, store)], order="pre")

    tvm_ffi.structural_walk(body, [(tirx.For, loop)], order="pre")
    return counts


def _is_plain(value: Expr) -> bool:
    return is_number(value) or isinstance(value, tirx.Var | TensorLoad)
