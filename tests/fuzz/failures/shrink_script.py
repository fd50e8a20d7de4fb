"""Smaller modules of TVM: fewer calls and blocks, simpler expressions."""

from collections.abc import Iterator
from dataclasses import replace

from ..case import ScriptCase
from ..generate.recipe import Expr, Function, Stage
from ..generate.scripts import Module, feeds_of


def simpler(case: ScriptCase) -> Iterator[ScriptCase]:
    """Smaller cases, the much smaller ones first; some are invalid."""
    module: Module = case.recipe

    def again(m: Module) -> ScriptCase:
        m = pruned(m)
        return ScriptCase(case.kind, case.seed, m, feeds_of(m, case.seed))

    for i, line in enumerate(module.lines):
        rest = (*module.lines[:i], *module.lines[i + 1 :])
        if rest:
            yield again(replace(module, lines=rest, params=(*module.params, *line.fields)))
            yield again(replace(module, lines=(line,), params=(*module.params, *(f for r in rest for f in r.fields))))
    for i, function in enumerate(module.functions):
        for smaller in simpler_functions(function):
            functions = (*module.functions[:i], smaller, *module.functions[i + 1 :])
            yield again(replace(module, functions=functions))


def pruned(m: Module) -> Module:
    """Without what nothing reads: parameters, functions, and the blocks and inputs of functions."""
    called = {line.function for line in m.lines}
    functions = {f.name: live(f) for f in m.functions if f.name in called}
    lines = []
    for line in m.lines:
        if line.function:
            before = next(f for f in m.functions if f.name == line.function)
            left = set(functions[line.function].inputs)
            reads = tuple(r for r, b in zip(line.reads, before.inputs, strict=True) if b in left)
            line = replace(line, reads=reads)
        lines.append(line)
    read = {name for line in lines for name in line.reads}
    return replace(
        m, params=tuple(p for p in m.params if p.name in read), functions=tuple(functions.values()), lines=tuple(lines)
    )


def live(f: Function) -> Function:
    """A function without blocks whose results nothing reads, and without inputs that nothing reads."""
    needed = {b.name for b in f.results}
    stages: list[Stage] = []
    for stage in reversed(f.stages):
        if stage.target in needed:
            stages.insert(0, stage)
            needed |= _buffers(stage.body)
    inputs = tuple(b for b in f.inputs if b.name in needed)
    return replace(f, inputs=inputs, scratch=tuple(b for b in f.scratch if b.name in needed), stages=tuple(stages))


def _buffers(e: Expr) -> set[str]:
    here = {e[1]} if e[0] in ("load", "data") else set()
    return here.union(*(_buffers(part) for part in e if isinstance(part, tuple)))


def simpler_functions(function: Function) -> Iterator[Function]:
    """Functions of the same signature with less in them."""
    for i, stage in enumerate(function.stages):

        def put(s: Stage, i: int = i) -> Function:
            return replace(function, stages=(*function.stages[:i], s, *function.stages[i + 1 :]))

        if stage.offset:
            yield replace(function, stages=(*function.stages[:i], *function.stages[i + 1 :]))
        if stage.reduce and 1 not in stage.reduce[:1]:
            yield put(replace(stage, reduce=(1, *stage.reduce[1:])))
        if stage.split > 1 or stage.order:
            yield put(replace(stage, split=1, order=()))
        plain = {"place": (), "where": (), "term_first": False, "hidden": ()}
        yield from (put(replace(stage, **{name: to})) for name, to in plain.items() if getattr(stage, name) != to)
        dtype = next(b.dtype for b in (*function.scratch, *function.results) if b.name == stage.target)
        if stage.body[0] != "lit":
            yield put(replace(stage, body=("lit", dtype, 1)))
        for body in simpler_values(stage.body):
            yield put(replace(stage, body=body))
    if function.wide:
        yield replace(function, wide=False)


def simpler_values(e: Expr) -> Iterator[Expr]:
    """Parts of an expression in its place; a cast stays, since types have to agree."""
    kind = e[0]
    if kind == "bin":
        yield from (e[2], e[3])
    elif kind == "call":
        yield e[2]
    elif kind in ("if", "select"):
        yield e[3]
        if kind == "select" or e[2][0] != "load":
            yield e[2]
    elif kind == "cast" and e[2][0] != "lit":
        yield ("cast", e[1], ("lit", "int32", 1))
    first = {"bin": 2, "call": 2, "cast": 2, "if": 2, "select": 2}.get(kind)
    for i in range(first, len(e)) if first else ():
        for smaller in simpler_values(e[i]):
            yield (*e[:i], smaller, *e[i + 1 :])
