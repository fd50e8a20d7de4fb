"""The text of a function in TVMScript."""

from .recipe import Buffer, Expr, Function, Stage


class Printer:
    """Prints a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.axis = "v"
        """Prefix of the axes' names: `i` where the loops are meant."""

    def integer(self, n: int) -> str:
        return f"T.int64({n})" if self.function.wide else str(n)

    def index(self, e: Expr) -> str:
        kind, n = e[0], self.integer
        if kind == "var":
            return f"{self.axis}{e[1]}"
        if kind == "num":
            return n(e[1])
        if kind == "add":
            return f"({self.index(e[1])} + {self.index(e[2])})"
        if kind == "data":
            place = ", ".join(map(self.index, e[3:]))
            value = f"{e[1]}[{place}]"
            value = f'T.Cast("int64", {value})' if self.function.wide else value
            return f"T.floormod({value}, {n(e[2])})"
        if kind == "mul":
            return f"({self.index(e[1])} * {n(e[2])})"
        if kind == "choose":
            return f"T.Select({self.condition(e[1])}, {self.index(e[2])}, {self.index(e[3])})"
        call = {"div": "T.floordiv", "mod": "T.floormod", "min": "T.min", "max": "T.max"}[kind]
        return f"{call}({self.index(e[1])}, {n(e[2])})"

    def condition(self, e: Expr) -> str:
        if e[0] == "cmp":
            return f"{self.index(e[2])} {e[1]} {self.index(e[3])}"
        return f"T.{'And' if e[0] == 'and' else 'Or'}({self.condition(e[1])}, {self.condition(e[2])})"

    def value(self, e: Expr) -> str:
        kind = e[0]
        if kind == "lit":
            return f"T.{e[1]}({e[2]})"
        if kind == "load":
            return f"{e[1]}[{', '.join(map(self.index, e[2:])) or '()'}]"
        if kind == "bin":
            a, b = self.value(e[2]), self.value(e[3])
            return f"T.{e[1]}({a}, {b})" if e[1] in ("max", "min") else f"({a} {e[1]} {b})"
        if kind == "call":
            return f"T.{e[1]}({self.value(e[2])})"
        if kind == "cast":
            return f'T.Cast("{e[1]}", {self.value(e[2])})'
        if kind == "axis":
            return f'T.Cast("{e[2]}", v{e[1]})'
        name = "T.if_then_else" if kind == "if" else "T.Select"
        return f"{name}({self.condition(e[1])}, {self.value(e[2])}, {self.value(e[3])})"

    def buffer(self, b: Buffer) -> str:
        extents = "".join(f"{self.integer(d)}, " for d in b.shape)
        return f'({extents}), "{b.dtype}"'

    def stage(self, number: int, s: Stage) -> list[str]:
        extents = (*s.spatial, *s.reduce)
        loops = [(f"i{a}", e) for a, e in enumerate(extents)]
        binding = [f"i{a}" for a in range(len(extents))]
        if s.split > 1:
            loops[0:1] = [("o0", -(-extents[0] // s.split)), ("i0", s.split)]
            binding[0] = f"o0 * {self.integer(s.split)} + i0"
        loops = [loops[i] for i in s.order] if len(s.order) == len(loops) else loops
        lines, pad = [], ""
        if loops:
            names, ends = ", ".join(n for n, _ in loops), ", ".join(self.integer(e) for _, e in loops)
            lines, pad = [f"for {names} in T.grid({ends}):"], "    "
        lines.append(f'{pad}with T.sblock("b{number}"):')
        pad += "    "
        for a, e in enumerate(extents):
            kind = "spatial" if a < len(s.spatial) else "reduce"
            lines.append(f"{pad}v{a} = T.axis.{kind}({self.integer(e)}, {binding[a]})")
        if not extents:
            lines.append(f"{pad}vi = T.axis.spatial({self.integer(1)}, {self.integer(0)})")
        lines += [pad + line for line in self.claims(s, extents, binding)]
        shift = s.offset or (0,) * len(s.spatial)
        place = [f"v{a} + {self.integer(o)}" if o else f"v{a}" for a, o in enumerate(shift)]
        place = list(map(self.index, s.place)) or place
        target = f"{s.target}[{', '.join(place) or '()'}]"
        body = self.value(s.body)
        if s.combine:
            buffers = (*self.function.scratch, *self.function.results)
            dtype = next(b.dtype for b in buffers if b.name == s.target)
            init = f"T.{dtype}({int(s.init) if 'int' in dtype else float(s.init)})"
            lines += [f"{pad}with T.init():", f"{pad}    {target} = {init}"]
            sign = {"sum": "+", "prod": "*"}.get(s.combine)
            a, b = (body, target) if s.term_first else (target, body)
            body = f"{a} {sign} {b}" if sign else f"T.{s.combine}({a}, {b})"
        return [*lines, f"{pad}{target} = {body}"]

    def claims(self, s: Stage, extents: tuple[int, ...], binding: list[str]) -> list[str]:
        """What a block says of itself: when it runs, and that it does not access what it does."""
        conditions = [f"{binding[0]} < {self.integer(extents[0])}"] if s.split > 1 and extents[0] % s.split else []
        if s.where:
            self.axis = "i"
            conditions.append(self.condition(s.where))
            self.axis = "v"
        lines = [f"T.where({' and '.join(conditions)})"] if conditions else []
        return lines + [f"T.{what}()" for what in s.hidden]

    def text(self) -> str:
        f = self.function
        params = ", ".join(f"{b.name}: T.Buffer({self.buffer(b)})" for b in (*f.inputs, *f.results))
        # Of the root block, as in TVM's own operators, or as a statement.
        allocate = "T.sblock_alloc_buffer" if f.wide else "T.alloc_buffer"
        body = [f"{b.name} = {allocate}({self.buffer(b)})" for b in f.scratch]
        for number, s in enumerate(f.stages):
            body += self.stage(number, s)
        head = ["@T.prim_func(private=True, s_tir=True)", f"def {f.name}({params}):"]
        return "\n".join(["    " + line for line in head] + ["        " + line for line in body])
