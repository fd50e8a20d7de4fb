"""What TVM's simplifier gets wrong, in other words.

It takes `x - x` for 0, `(x + y) - x` for y, and `x == x` for true. They are not where x is infinite or NaN, nor is the
second where x is so large that y is lost in the sum. Single operators are safe, for their operands are two parameters;
fusion brings both to the same one. So what might have a part in common is written otherwise here: as x + y * -1, which
is as exact, and as x <= y and y <= x.

Of a comparison that is negated it makes the opposite one, which is as false of NaN: it becomes a choice.

And of a quotient that is rounded to 0 it takes vectors apart as if it were rounded down: for lanes i of (1 - 2 * i) / 2
it says -i. An average pool with dilations counts by such quotients.

A remainder of what is less than the divisor, as reshapes have them, becomes what it is a remainder of. Where a reversal
reads it, TVM would take (4 - i) % 5 apart into something else.
"""

from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import TensorLoad

from ..bindings import rewrite_prim_funcs
from ..module_pass import module_pass


def ExactSimplification() -> tvm.transform.Pass:
    """Make the pass; it works on fused functions."""
    return _exact_simplification


@module_pass("RammerExactSimplification")
def _exact_simplification(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    def simplified(func: tirx.PrimFunc) -> tirx.PrimFunc | None:
        body = _Function(func).body()
        return None if body.same_as(func.body) else func.with_body(body)

    return rewrite_prim_funcs(mod, simplified)


class _Function:
    """Rewrites one function.

    Parameters
    ----------
    func : tirx.PrimFunc
    """

    def __init__(self, func: tirx.PrimFunc) -> None:
        self._func = func
        stores: dict[tirx.Var, list[tirx.BufferStore]] = {}

        def note(store: tirx.BufferStore) -> None:
            stores.setdefault(store.buffer, []).append(store)

        tvm_ffi.structural_walk(func.body, [(tirx.BufferStore, note)], order="pre")
        params = set(func.params)
        self._values: Mapping[tirx.Var, tirx.Expr] = {
            buffer: some[0].value for buffer, some in stores.items() if len(some) == 1 and buffer not in params
        }
        self._known: dict[tirx.Var, frozenset[tirx.Var]] = {}
        self._axes = tvm.sym.Analyzer()

        def bind(block: s_tir.SBlock) -> None:
            for axis in block.iter_vars:
                self._axes.bind(axis.var, axis.dom)

        tvm_ffi.structural_walk(func.body, [(s_tir.SBlock, bind)], order="pre")

    def body(self) -> tirx.Stmt:
        rules = [
            (tirx.Sub, self._difference),
            (tirx.EQ, self._equality),
            (tirx.Not, _negation),
            (tirx.Div, self._quotient),
            (tirx.FloorMod, self._remainder),
        ]
        return tvm_ffi.structural_map(self._func.body, rules, order="post")

    def _difference(self, node: tirx.Sub) -> tirx.Expr:
        if not self._shares(node):
            return node
        return tirx.Add(node.a, tirx.Mul(node.b, tirx.const(-1.0, str(node.b.ty.dtype))))

    def _equality(self, node: tirx.EQ) -> tirx.Expr:
        return tirx.And(tirx.LE(node.a, node.b), tirx.LE(node.b, node.a)) if self._shares(node) else node

    def _shares(self, node: tirx.Sub | tirx.EQ) -> bool:
        """Whether both sides may be made of the same element, once one block is put into another."""
        if "float" not in str(node.a.ty.dtype):
            return False
        return bool(self._sources(node.a) & self._sources(node.b))

    def _sources(self, expr: tirx.Expr) -> frozenset[tirx.Var]:
        """The buffers that an expression reads, through those that one store writes."""
        read: set[tirx.Var] = set()
        tvm_ffi.structural_walk(expr, [(TensorLoad, lambda load: read.add(load.source))], order="pre")
        found: set[tirx.Var] = set()
        for buffer in read:
            if buffer not in self._known:
                self._known[buffer] = frozenset({buffer})  # an accumulator reads itself
                if buffer in self._values:
                    self._known[buffer] = self._sources(self._values[buffer])
            found |= self._known[buffer]
        return frozenset(found)

    def _quotient(self, node: tirx.Div) -> tirx.Expr:
        """The same by quotients that are rounded down, where the dividend is a position rather than data.

        There is but one where the dividend is proven not to be below 0: what blocks claim to read cannot be proven of a
        choice.
        """
        if not isinstance(node.b, tirx.IntImm) or int(node.b) < 2 or not _is_of_positions(node.a):
            return node
        zero = tirx.const(0, str(node.a.ty.dtype))
        if self._axes.can_prove(node.a >= 0):
            return tirx.FloorDiv(node.a, node.b)
        return _rounded_to_zero(node, zero)

    def _remainder(self, node: tirx.FloorMod) -> tirx.Expr:
        """What it is a remainder of, where that is less than the divisor."""
        if not isinstance(node.b, tirx.IntImm) or not _is_of_positions(node.a):
            return node
        return node.a if self._axes.can_prove(tirx.And(node.a >= 0, node.a < node.b)) else node


def _negation(node: tirx.Not) -> tirx.Expr:
    """A choice, where what is negated depends on numbers that may be NaN, or on what another block has compared."""
    depends: list[bool] = []
    kinds = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
    visits = [(kind, lambda one: depends.append("float" in str(one.a.ty.dtype))) for kind in kinds]
    visits.append((TensorLoad, lambda load: depends.append(str(load.ty.dtype) == "bool")))
    tvm_ffi.structural_walk(node.a, visits, order="pre")
    return tirx.Select(node.a, tirx.const(False, "bool"), tirx.const(True, "bool")) if any(depends) else node


def _rounded_to_zero(node: tirx.Div, zero: tirx.Expr) -> tirx.Expr:
    """A choice of two quotients that are rounded down."""
    below = tirx.Sub(zero, tirx.FloorDiv(tirx.Sub(zero, node.a), node.b))
    return tirx.Select(tirx.GE(node.a, zero), tirx.FloorDiv(node.a, node.b), below)


def _is_of_positions(expr: tirx.Expr) -> bool:
    found: list[object] = []
    tvm_ffi.structural_walk(expr, [(TensorLoad, found.append)], order="pre")
    return not found and not isinstance(expr, tirx.IntImm)
