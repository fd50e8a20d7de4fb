"""The loads of an element's expression: which there are, and whether they can be vectors."""

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, Range, TensorLoad

from ...analysis.variables import substituted
from ..threads import number
from .parts import Axes


def loads_of(value: Expr) -> list[TensorLoad]:
    """The loads of an expression that are in no other load's index; equal ones once."""
    found: list[TensorLoad] = []

    def visit(node: TensorLoad) -> None:
        inner: list[TensorLoad] = []
        for index in node.indices:
            tvm_ffi.structural_walk(index, [(TensorLoad, inner.append)], order="pre")
        found[:] = [f for f in found if not any(f.same_as(i) for i in inner)]
        if not any(tvm_ffi.structural_equal(f, node) for f in found):
            found.append(node)

    tvm_ffi.structural_walk(value, [(TensorLoad, visit)], order="post")
    return found


def replaced(value: Expr, known: Mapping[TensorLoad, Expr]) -> Expr:
    """An expression with values in the places of loads."""

    def load(node: TensorLoad) -> Expr:
        return next((new for old, new in known.items() if tvm_ffi.structural_equal(old, node)), node)

    return tvm_ffi.structural_map(value, (TensorLoad, load), order="post")


def has_calls(value: Expr) -> bool:
    """Whether an expression calls anything, such as the choice of a padded image."""
    calls: list[Call] = []
    tvm_ffi.structural_walk(value, [(Call, calls.append)], order="pre")
    return bool(calls)


def has_choices(value: Expr) -> bool:
    """Whether some of an expression's loads may be under a condition."""
    found: list[Expr] = []

    def call(node: Call) -> None:
        if str(getattr(node.op, "name", "")).endswith("if_then_else"):
            found.append(node)

    tvm_ffi.structural_walk(value, [(Call, call), (tirx.Select, found.append)], order="pre")
    return bool(found)


def is_vector(value: Expr, axes: Axes, width: int) -> bool:
    """Whether all loads of an expression move by one element, or not at all, along each aligned vector of some axes."""
    rest = tvm_ffi.structural_map(value, (TensorLoad, lambda n: tirx.const(0, str(n.ty.dtype))), order="post")
    varies = set(tirx.analysis.undefined_vars(rest)) & set(axes.variables)
    return not has_calls(value) and not varies and all(step_of(n, axes, width) is not None for n in loads_of(value))


def step_of(load: TensorLoad, axes: Axes, width: int) -> int | None:
    """By how many elements a load moves along each aligned vector: 0 or 1; None where it is something else."""
    analyzer = tvm.sym.Analyzer()
    block, element = tirx.Var("block", "int64"), tirx.Var("element", "int64")
    analyzer.bind(block, Range(0, axes.extent // width))
    analyzer.bind(element, Range(0, width))

    def flat(at: Expr) -> Expr:
        place: Expr = number(0)
        for index, size in zip(load.indices, load.source.shape, strict=True):
            place = place * size + substituted(index, axes.at(at))
        return place

    first = flat(block * width)
    change = analyzer.simplify(flat(block * width + element) - first)
    if analyzer.can_prove_equal(change, 0):
        return 0
    aligned = analyzer.can_prove_equal(tirx.floormod(first, number(width)), 0)
    return 1 if aligned and analyzer.can_prove_equal(change, element) else None
