"""Random modules of TVM: functions of our own and Relax operators, called in a row."""

import math
import random
from dataclasses import dataclass

import numpy as np

from ..case import ScriptCase
from .functions import Writer
from .printer import Printer
from .recipe import Buffer, Function
from .views import ViewWriter, split_again


@dataclass(frozen=True)
class Line:
    """A binding: its names and types, and its right side, in TVMScript, or the PrimFunc that it calls on `reads`.

    `fields` has more than one element if the value is a tuple, which is taken apart at once.
    """

    fields: tuple[Buffer, ...]
    text: str
    reads: tuple[str, ...]
    function: str = ""

    def expression(self) -> str:
        """The right side."""
        if not self.function:
            return self.text
        types = ", ".join(map(_type, self.fields))
        out = types if len(self.fields) == 1 else f"[{types}]"
        given = "".join(f"{a}, " for a in self.reads)
        return f"R.call_tir(cls.{self.function}, ({given}), out_ty={out})"


@dataclass(frozen=True)
class Module:
    """A module whose `main` returns all values that nothing reads; `entry` says who compiles it."""

    entry: str
    params: tuple[Buffer, ...]
    functions: tuple[Function, ...]
    lines: tuple[Line, ...]

    def results(self) -> list[Buffer]:
        read = {name for line in self.lines for name in line.reads}
        return [field for line in self.lines for field in line.fields if field.name not in read]


def _type(b: Buffer) -> str:
    extents = "".join(f"{d}, " for d in b.shape)
    return f'R.Tensor(({extents}), "{b.dtype}")'


def script(module: Module) -> str:
    """The module in TVMScript."""
    lines = ["@I.ir_module", "class Module:"]
    for function in module.functions:
        lines += [Printer(function).text(), ""]
    params = ", ".join(f"{p.name}: {_type(p)}" for p in module.params)
    lines += ["    @R.function", f"    def main({params}):", "        cls = Module", "        with R.dataflow():"]
    for line in module.lines:
        if len(line.fields) == 1:
            lines.append(f"            {line.fields[0].name} = {line.expression()}")
            continue
        whole = "t_" + line.fields[0].name
        lines.append(f"            {whole} = {line.expression()}")
        lines += [f"            {f.name} = {whole}[{i}]" for i, f in enumerate(line.fields)]
    names = [b.name for b in module.results()]
    outs = [f"out{i}" for i in range(len(names))]
    lines += [f"            {o} = {n}" for o, n in zip(outs, names, strict=True)]
    joined = ", ".join(outs)
    lines += [f"            R.output({joined})", f"        return {joined if len(outs) == 1 else f'({joined})'}"]
    return "\n".join(lines) + "\n"


def script_case(seed: int) -> ScriptCase:
    """Make a module, and values for its parameters."""
    rng = random.Random(f"primfuncs/{seed}")
    params: list[Buffer] = []
    functions: list[Function] = []
    lines: list[Line] = []
    for number in range(rng.choice([1, 1, 1, 2, 3, 4])):
        values = [f for line in lines for f in line.fields]
        if rng.random() < 0.35 and (line := relax_line(rng, number, [*values, *values, *params])):
            lines.append(line)
            continue
        function = rng.choice(functions) if functions and rng.random() < 0.25 else None
        if function is None:
            function = rng.choice([Writer, Writer, ViewWriter])(rng, f"f{number}").function()
            functions.append(function)
        lines.append(call_line(rng, number, function, values, params))
    entry = rng.choice(["pipeline", "compile"])
    module = Module(entry, tuple(params), tuple(functions), tuple(lines))
    return ScriptCase("primfuncs", seed, module, feeds_of(module, seed))


def feeds_of(module: Module, seed: int) -> dict[str, np.ndarray]:
    """Values for the parameters; what one parameter gets does not depend on the others."""
    feeds = {}
    for p in module.params:
        draw = np.random.default_rng([seed, *p.name.encode()])
        if p.dtype.startswith("float"):
            feeds[p.name] = np.asarray(draw.uniform(-2, 2, p.shape)).astype(p.dtype)
        else:
            feeds[p.name] = np.asarray(draw.integers(0 if p.dtype == "bool" else -8, 9, p.shape)).astype(p.dtype)
    return feeds


def call_line(rng: random.Random, number: int, function: Function, values: list[Buffer], params: list[Buffer]) -> Line:
    """A call of a function: each argument is a value of the right type, or a new parameter."""
    arguments = []
    for b in function.inputs:
        known = [v.name for v in (*values, *params) if (v.dtype, v.shape) == (b.dtype, b.shape)]
        if known and rng.random() < 0.6:
            arguments.append(rng.choice(known))
            continue
        params.append(Buffer(f"p{len(params)}", b.dtype, b.shape))
        arguments.append(params[-1].name)
    fields = tuple(Buffer(f"y{number}_{i}", b.dtype, b.shape) for i, b in enumerate(function.results))
    return Line(fields, "", tuple(arguments), function.name)


def relax_line(rng: random.Random, number: int, values: list[Buffer]) -> Line | None:
    """An operator of Relax on a value, or None if none fits: often one that moves elements."""
    floats = [v for v in values if v.dtype == "float32" and v.shape]
    if not floats:
        return None
    x = rng.choice(floats)
    n, shape, rank = x.name, x.shape, len(x.shape)
    axis = rng.randrange(rank)
    order = list(range(rank))
    rng.shuffle(order)
    less = (*shape[:axis], *shape[axis + 1 :])
    other = rng.choice([v for v in floats if v.shape == shape])
    cut = (*shape[:axis], (shape[axis] + 1) // 2, *shape[axis + 1 :])
    ways = [
        (f"R.nn.relu({n})", shape), (f"R.exp(R.minimum({n}, R.const(3.0, 'float32')))", shape), (f"R.tanh({n})", shape),
        (f"R.add({n}, {other.name})", shape), (f"R.multiply({n}, {other.name})", shape), (f"R.sigmoid({n})", shape),
        (f"R.sum({n}, axis=[{axis}])", less), (f"R.max({n}, axis=[{axis}])", less), (f"R.mean({n})", ()),
        (f"R.permute_dims({n}, axes={order})", tuple(shape[o] for o in order)),
        (f"R.nn.softmax({n}, axis={axis})", shape),
        (f"R.reshape({n}, ({math.prod(shape)},))", (math.prod(shape),)),
        (f"R.expand_dims({n}, axis={axis})", (*shape[:axis], 1, *shape[axis:])),
        (f"R.strided_slice({n}, axes=[{axis}], begin=[0], end=[{shape[axis]}], strides=[2])", cut),
        (f"R.flip({n}, axis={axis})", shape), (f"R.cumsum({n}, axis={axis})", shape),
        (f"R.concat(({n}, {other.name}), axis={axis})", (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])),
    ]  # fmt: skip
    if math.prod(shape) <= 2_000:
        ways += _moves(rng, n, shape, axis)
    if rank == 2:
        ways.append((f"R.matmul({n}, R.permute_dims({other.name}))", (shape[0], shape[0])))
    text, result = rng.choice(ways)
    reads = (n, other.name) if other.name in text.replace(n, "", 1) else (n,)
    return Line((Buffer(f"y{number}_0", "float32", tuple(result)),), text, reads)


def _moves(rng: random.Random, n: str, shape: tuple[int, ...], axis: int) -> list[tuple[str, tuple[int, ...]]]:
    """Views of a value: backwards, repeated, mirrored, re-split."""
    extent, count = shape[axis], rng.choice([2, 3, 5])
    head, tail = shape[:axis], shape[axis + 1 :]
    repeated, first, step = (*head, extent * count, *tail), rng.randint(0, extent - 1), rng.choice([1, 1, 2])
    apart, again = (*head, extent, count, *tail), split_again(rng, math.prod(shape))
    reps = [count if a == axis else 1 for a in range(len(shape))]
    pad = rng.randint(0, min(3, extent - 1))
    width = [pad if a // 2 == axis else 0 for a in range(2 * len(shape))]
    padded = (*head, extent + 2 * pad, *tail)
    back = f"axes=[{axis}], begin=[{first}], end=[{-extent - 1}], strides=[{-step}]"
    return [
        (f"R.strided_slice({n}, {back})", (*head, first // step + 1, *tail)),
        (f"R.repeat({n}, {count}, {axis})", repeated),
        (f"R.tile({n}, {reps})", repeated),
        (f"R.reshape(R.broadcast_to(R.expand_dims({n}, axis={axis + 1}), {apart}), {repeated})", repeated),
        (f"R.reshape({n}, {again})", again),
        (f'R.nn.pad({n}, {width}, "{rng.choice(["constant", "reflect"])}")', padded),
    ]
