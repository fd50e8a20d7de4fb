"""What each rTask of a scheduled function really touches: its loops, run one by one as Python."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import tvm_ffi
from tvm import s_tir, tirx
from tvm.ir import Call, Expr, TensorLoad

from tvm_rammer.ir import Footprint
from tvm_rammer.rkernel_gen.footprint.footprint import footprints_of

Elements = dict[str, set[tuple[int, ...]]]
"""For each parameter the indices of its loads, or of its stores, as they are written."""


@dataclass(frozen=True, slots=True)
class Touched:
    """What an rTask loads and stores."""

    loads: Elements
    stores: Elements


def touched(func: tirx.PrimFunc, num_rtasks: int) -> list[Touched]:
    """Run all rTasks of a small kernel of static shapes; values do not matter, so only indices are computed."""
    code = _Code(func, num_rtasks)
    names = [p.name for p in func.params]
    found = [Touched({n: set() for n in names}, {n: set() for n in names}) for _ in range(num_rtasks)]
    scope: dict[str, object] = {}
    exec("\n".join(["def run(load, store, rtask):", *code.statement(func.body, 1), "    return"]), scope)
    run = scope["run"]
    assert callable(run)
    for rtask, its in enumerate(found):
        run(_recorder(its.loads), _recorder(its.stores), rtask)
    return found


def _recorder(found: Elements) -> Callable[..., int]:
    def touch(name: str, *index: int) -> int:
        found[name].add(index)
        return 0

    return touch


def assert_covers(func: tirx.PrimFunc, num_rtasks: int) -> tuple[Footprint | None, ...]:
    """Each footprint covers all that each rTask touches, and none reads what others write."""
    footprints = footprints_of(func, num_rtasks)
    really = touched(func, num_rtasks)
    assert not shared(really), shared(really)
    for param, footprint in zip(func.params, footprints, strict=True):
        if footprint is None:
            continue
        shape = tuple(int(s) for s in param.shape)
        assert math.prod(footprint.radices) == num_rtasks
        for rtask, found in enumerate(really):
            box = footprint.box(rtask)
            for index in (*found.loads[param.name], *found.stores[param.name]):
                place = _split(_linear(index, shape), footprint.view or shape)
                assert all(low <= i < high for i, (low, high) in zip(place, box, strict=True)), (param, rtask, index)
    return footprints


def shared(really: list[Touched]) -> str:
    """What an rTask reads that another one writes; empty where there is nothing.

    Two rTasks of an operator may run at the same time. What both write, as tiles do that overlap, neither reads: so it
    has its value when it is stored, and is no sum that goes on.
    """
    for name in really[0].stores:
        writers = Counter(index for its in really for index in its.stores[name])
        for rtask, its in enumerate(really):
            for index in its.loads[name]:
                if writers[index] != (index in its.stores[name]):
                    return f"rTask {rtask} reads {name}{index}, which others write"
    return ""


def _linear(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    place = 0
    for i, size in zip(index, shape, strict=True):
        place = place * size + i
    return place


def _split(place: int, view: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(view):
        place, i = divmod(place, size)
        index.append(i)
    return tuple(reversed(index))


class _Code:
    def __init__(self, func: tirx.PrimFunc, num_rtasks: int) -> None:
        self.params = set(func.params)
        self.num_rtasks = num_rtasks
        self.names: dict[tirx.Var, str] = {}
        self.blocks: dict[str, int] = {}
        tvm_ffi.structural_walk(func.body, [(tirx.For, self._block_extent)], order="pre")

    def _block_extent(self, loop: tirx.For) -> None:
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
        if tag.startswith("blockIdx."):
            self.blocks[tag] = int(loop.extent)

    def name(self, var: tirx.Var) -> str:
        return self.names.setdefault(var, f"v{len(self.names)}")

    def matters(self, node: object) -> bool:
        found: list[bool] = []
        tvm_ffi.structural_walk(node, [(tirx.Var, lambda v: found.append(True) if v in self.params else None)])
        return bool(found)

    def statement(self, stmt: tirx.Stmt, depth: int, outermost: bool = True) -> list[str]:
        pad = "    " * depth
        match stmt:
            case tirx.SeqStmt():
                return [line for part in stmt.seq for line in self.statement(part, depth, outermost)]
            case tirx.For():
                if not self.matters(stmt.body):
                    return []
                return self.loop(stmt, depth, outermost)
            case s_tir.SBlockRealize():
                block = stmt.block
                lines = [f"{pad}if {self.value(stmt.predicate)}:"]
                values = zip(block.iter_vars, stmt.iter_values, strict=True)
                lines += [f"{pad}    {self.name(axis.var)} = {self.value(v)}" for axis, v in values]
                for body in (block.init, block.body):
                    lines += self.statement(body, depth + 1, outermost) if body is not None else []
                return [*lines, f"{pad}    pass"]
            case tirx.IfThenElse():
                lines = [f"{pad}if {self.value(stmt.condition)}:", *self.statement(stmt.then_case, depth + 1)]
                lines += [f"{pad}    pass", f"{pad}else:"]
                otherwise = self.statement(stmt.else_case, depth + 1) if stmt.else_case is not None else []
                return [*lines, *otherwise, f"{pad}    pass"]
            case tirx.BufferStore():
                stored = [self.access(stmt.buffer, stmt.indices, "store")] if stmt.buffer in self.params else []
                return [f"{pad}{line}" for line in (*stored, self.value(stmt.value)) if line != "0"]
            case tirx.Bind():
                return [f"{pad}{self.name(stmt.var)} = {self.value(stmt.value)}"]
            case tirx.AttrStmt():
                return self.statement(stmt.body, depth, outermost)
            case tirx.AllocBuffer():
                return []
            case tirx.Evaluate() if getattr(getattr(stmt.value, "op", None), "name", "").endswith("prefetch"):
                return []
            case tirx.Evaluate():
                return [f"{pad}{self.value(stmt.value)}"] if self.matters(stmt.value) else []
        raise AssertionError(f"no kernel holds a {type(stmt).__name__}")

    def loop(self, loop: tirx.For, depth: int, outermost: bool) -> list[str]:
        pad, var = "    " * depth, self.name(loop.loop_var)
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
        if tag in self.blocks:
            below = 1
            for other in sorted(self.blocks):
                below *= self.blocks[other] if other < tag else 1
            return [f"{pad}{var} = rtask // {below} % {self.blocks[tag]}", *self.statement(loop.body, depth, False)]
        if outermost and loop.kind == tirx.ForKind.PARALLEL and self.num_rtasks > 1:
            return [f"{pad}{var} = rtask", *self.statement(loop.body, depth, False)]
        first = self.value(loop.min)
        return [
            f"{pad}for {var} in range({first}, {first} + {self.value(loop.extent)}):",
            *self.statement(loop.body, depth + 1, False),
            f"{pad}    pass",
        ]

    def access(self, buffer: tirx.Var, indices: list[Expr], how: str = "load") -> str:
        *outer, last = indices or [None]
        if not isinstance(last, tirx.Ramp):
            return f"{how}({', '.join([repr(buffer.name), *map(self.value, indices)])})"
        base, stride, place = self.value(last.base), int(last.stride), [repr(buffer.name), *map(self.value, outer)]
        lanes = [f"{how}({', '.join([*place, f'{base} + {stride * lane}'])})" for lane in range(int(last.lanes))]
        return f"(0 * len(({', '.join(lanes)},)))"

    def value(self, expr: Expr) -> str:
        """An integer expression as it is; of any other only the loads."""
        match expr:
            case tirx.IntImm():
                return str(int(expr))
            case tirx.Var():
                return self.name(expr) if "int" in str(expr.ty.dtype) else "0"
            case tirx.FloatImm():
                return "0"
            case TensorLoad():
                return self.access(expr.source, expr.indices) if expr.source in self.params else "0"
            case Call() if expr.op.name.endswith("if_then_else"):
                condition, then, otherwise = map(self.value, expr.args)
                return f"({then} if {condition} else {otherwise})"
            case Call():
                return self.all_of(*expr.args)
            case tirx.Select():
                return self.all_of(expr.condition, expr.true_value, expr.false_value)
            case tirx.Cast() | tirx.Broadcast():
                return self.value(expr.value)
            case tirx.Let():
                return f"(lambda {self.name(expr.var)}: {self.value(expr.body)})({self.value(expr.value)})"
            case tirx.Shuffle():
                return self.all_of(*expr.vectors)
            case tirx.Not():
                return f"(not {self.value(expr.a)})"
        if "float" in str(expr.a.ty.dtype) or type(expr) not in (*_SIGNS, tirx.Min, tirx.Max):
            return self.all_of(expr.a, expr.b)
        a, b = self.value(expr.a), self.value(expr.b)
        if isinstance(expr, tirx.Min | tirx.Max):
            return f"{'min' if isinstance(expr, tirx.Min) else 'max'}({a}, {b})"
        return f"({a} {_SIGNS[type(expr)]} {b})"

    def all_of(self, *exprs: Expr) -> str:
        found = [v for v in map(self.value, exprs) if v != "0"]
        return f"(0 * len(({', '.join(found)},)))" if found else "0"


_SIGNS = {
    tirx.Add: "+", tirx.Sub: "-", tirx.Mul: "*", tirx.FloorDiv: "//", tirx.FloorMod: "%", tirx.LT: "<", tirx.LE: "<=",
    tirx.GT: ">", tirx.GE: ">=", tirx.EQ: "==", tirx.NE: "!=", tirx.And: "and", tirx.Or: "or",
}  # fmt: skip
