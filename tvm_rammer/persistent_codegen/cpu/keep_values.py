"""Values in memory that TVM's code generator for LLVM would put into all that is computed from them.

It binds each name to the value that a `Let` gives it, and simplifies what is bound. That puts earlier values in the
place of their names, each time they occur. So of functions of functions the time grows exponentially: a sine of a sine
takes minutes. It looks through no memory. LLVM has the value in a register where it is loaded after it was stored.
"""

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr
from tvm_ffi import WalkResult

from ...loads.bodies import operation

MOST_NODES = 2048
"""Nodes, at most, of a value that stays a name, with all names in it replaced. Of a single function they are 1,077."""


def keep_values(body: tirx.Stmt) -> tuple[tirx.Stmt, list[tirx.Buffer]]:
    """Store each value that would grow beyond `MOST_NODES` in an array of its own, and name what is loaded from there.

    What is computed under a condition within an expression stays as it is: it might load from where nothing is.

    Parameters
    ----------
    body : tirx.Stmt
        Of a lowered function. Where there is such a value, the loops that are to be vectors become vectors.

    Returns
    -------
    tirx.Stmt
    list of tirx.Buffer
        The arrays, which nothing allocates.
    """
    if not _Values().stored(body)[1]:
        return body, []
    module = tvm.IRModule({"main": tirx.PrimFunc([], body)})
    return _Values().stored(tirx.transform.VectorizeLoop()(module)["main"].body)


class _Values:
    """How large the values of a function would be, and the arrays of those that would be too large."""

    def __init__(self) -> None:
        self._arrays: list[tirx.Buffer] = []
        self._loads: dict[tirx.Var, Expr] = {}
        self._nodes: dict[tirx.Var, int] = {}

    def stored(self, body: tirx.Stmt) -> tuple[tirx.Stmt, list[tirx.Buffer]]:
        """A statement whose large values come from arrays, and these arrays."""

        def store(node: tirx.BufferStore) -> tirx.Stmt:
            before, value = self._apart(node.value)
            if not before:
                return node
            stores = [*before, tirx.BufferStore(node.buffer, value, node.indices)]
            return tirx.SeqStmt([tirx.BufferStore(s.buffer, self._named(s.value), s.indices) for s in stores])

        return tvm_ffi.structural_map(body, (tirx.BufferStore, store), order="post"), self._arrays

    def _apart(self, expr: Expr) -> tuple[list[tirx.BufferStore], Expr]:
        """The statements that store the large values of an expression, and the expression that names these."""
        before: list[tirx.BufferStore] = []
        left: dict[tirx.Var, Expr] = {}
        for let in _outermost(expr):
            of_value, value = self._apart(let.value)
            self._nodes[let.var] = self._size(value)
            store = self._in_memory(let.var, value) if self._nodes[let.var] > MOST_NODES else None
            of_body, body = self._apart(let.body)
            if of_body and store is None:  # what the body stores may name it
                store = self._in_memory(let.var, value)
            before += [*of_value, *([store] if store else []), *of_body]
            left[let.var] = body if store else tirx.Let(let.var, value, body)
        if before:
            expr = tvm_ffi.structural_map(expr, (tirx.Let, lambda let: left.get(let.var, let)), order="post")
        return before, expr

    def _in_memory(self, var: tirx.Var, value: Expr) -> tirx.BufferStore:
        """The statement that stores the value of a name, truth values as integers."""
        dtype = value.ty.dtype
        scalar = "int8" if dtype.is_bool else dtype.with_lanes(1)
        array = tirx.decl_buffer((dtype.lanes,), scalar, var.name, scope="local")
        self._arrays.append(array)
        first = tirx.const(0, "int32")
        index = [first if dtype.lanes == 1 else tirx.Ramp(first, tirx.const(1, "int32"), dtype.lanes)]
        load: Expr = tirx.BufferLoad(array, index)
        if dtype.is_bool:
            value, load = tirx.Cast(load.ty.dtype, value), tirx.Cast(dtype, load)
        self._loads[var], self._nodes[var] = load, self._size(load)
        return tirx.BufferStore(array, value, index)

    def _named(self, expr: Expr) -> Expr:
        """An expression with names for what it loads. Of a load in a selection TVM would make a branch."""
        for var in tirx.analysis.undefined_vars(expr):
            expr = tirx.Let(var, self._loads[var], expr) if var in self._loads else expr
        return expr

    def _size(self, expr: Expr) -> int:
        """The nodes of an expression with all names replaced."""
        found = 0

        def count(node: Expr) -> None:
            nonlocal found
            found += self._nodes.get(node, 1) if isinstance(node, tirx.Var) else 1

        tvm_ffi.structural_walk(expr, (Expr, count), order="pre")
        return found


def _outermost(expr: Expr) -> list[tirx.Let]:
    """The names that an expression binds, but those of other names' values, and what is computed under a condition."""
    found: list[tirx.Let] = []

    def let(node: tirx.Let) -> WalkResult:
        found.append(node)
        return WalkResult.SKIP

    def call(node: Call) -> WalkResult:
        return WalkResult.SKIP if operation(node) == "if_then_else" else WalkResult.ADVANCE

    tvm_ffi.structural_walk(expr, [(tirx.Let, let), (Call, call)], order="pre")
    return found
