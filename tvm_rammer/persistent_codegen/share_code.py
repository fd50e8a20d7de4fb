"""One rTask function for several kernels of a program whose code differs in a few numbers.

On a GPU each function is inlined at the one place that calls it, so as many functions as kernels are code that is read
once. But the 1x1 convolutions of a dense block differ in the channels of their images: where they have the same tile,
that is in the number of steps, and in where the first whole step begins. An element-wise function may be the same for
any number of channels.

Functions that are equal but for numbers become one, which gets these as arguments after the index of its thread:

- how often a loop with a barrier runs;
- what an index is compared with;
- what is added to an index.

All other numbers have to be the same. Factors are those of addresses within a loop, quotients are slow where the
divisor is not known, and other loops are unrolled. Numbers that determine each other are one argument.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import tvm_ffi
from tvm import tirx
from tvm.ir import Call, Expr, TensorLoad

from ..kernel import RTaskFunction

MOST_NUMBERS = 3
"""Arguments that a function gets, at most: each is a word of a row, and some instructions before an rTask."""

_COMPARED = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
_ADDED = (tirx.Add, tirx.Sub)

_Replace = Callable[[tirx.IntImm], Expr]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function with its numbers in the order of its code, and its code without them."""

    function: RTaskFunction
    numbers: tuple[int, ...]
    bare: tirx.PrimFunc


@dataclass(frozen=True, slots=True)
class _Affine:
    """A number of each of several kernels: `factor` times one of their arguments, plus `offset`."""

    argument: int
    factor: int
    offset: int


def share_code(functions: Sequence[RTaskFunction], program: str) -> tuple[RTaskFunction, ...]:
    """Let functions of the same code be one.

    Parameters
    ----------
    functions : sequence of RTaskFunction
        For each operator, the function of its kernel on a GPU.
    program : str
        A name that no other program of the module has.

    Returns
    -------
    tuple of RTaskFunction
        For each operator. Those that share their code have the same name and `func`, and `numbers` of their own.
    """
    shared: dict[str, RTaskFunction] = {}
    for group in _alike({function.name: function for function in functions}.values()):
        shared |= _shared(group, program)
    return tuple(shared.get(function.name, function) for function in functions)


def _alike(functions: Iterable[RTaskFunction]) -> list[list[_Candidate]]:
    """Groups of functions that differ in numbers alone."""
    groups: dict[object, list[_Candidate]] = {}
    for function in functions:
        numbers: list[int] = []

        def leave_out(number: tirx.IntImm, numbers: list[int] = numbers) -> Expr:
            numbers.append(int(number.value))
            return tirx.IntImm("int32", 0)

        bare = _with_numbers(_with_sizes(function.func, [1] * len(function.func.params)), leave_out)
        key = function.dtypes, function.scratch, function.threads, tvm_ffi.structural_hash(bare, map_free_vars=True)
        groups.setdefault(key, []).append(_Candidate(function, tuple(numbers), bare))
    return [group for group in groups.values() if len(group) > 1 and _equal(group)]


def _equal(group: Sequence[_Candidate]) -> bool:
    """Whether functions of equal hashes are equal."""
    return all(tvm_ffi.structural_equal(group[0].bare, other.bare, map_free_vars=True) for other in group[1:])


def _shared(group: Sequence[_Candidate], program: str) -> dict[str, RTaskFunction]:
    """By the names of a group of functions, what they become; nothing where they are better left as they are."""
    columns = list(zip(*(candidate.numbers for candidate in group), strict=True))
    places, arguments = _arguments_of(columns)
    variables = [tirx.Var(f"number{n}", "int32") for n in range(len(arguments))]
    found = iter(range(len(columns)))

    def as_argument(number: tirx.IntImm) -> Expr:
        place = places.get(next(found))
        return number if place is None else variables[place.argument] * place.factor + place.offset

    first = group[0].function
    sizes = [max(of) for of in zip(*(_sizes(candidate.function.func) for candidate in group), strict=True)]
    func = _with_numbers(_with_sizes(first.func, sizes), as_argument)
    if len(arguments) > MOST_NUMBERS or _chooses_registers(func, variables):
        return {}
    func = tirx.PrimFunc([*func.params, *variables], func.body, func.ret_type, func.attrs)
    name = f"{program}_{first.name}"
    return {
        candidate.function.name: replace(
            candidate.function, name=name, func=func, numbers=tuple(argument[n] for argument in arguments)
        )
        for n, candidate in enumerate(group)
    }


def _arguments_of(columns: Sequence[Sequence[int]]) -> tuple[dict[int, _Affine], list[Sequence[int]]]:
    """The numbers that differ, by their positions, as functions of as few arguments; the arguments of each kernel."""
    places: dict[int, _Affine] = {}
    arguments: list[Sequence[int]] = []
    differing = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    for at in sorted(differing, key=lambda at: (max(columns[at]) - min(columns[at]), at)):
        known = (_affine(n, argument, columns[at]) for n, argument in enumerate(arguments))
        places[at] = next((place for place in known if place is not None), _Affine(len(arguments), 1, 0))
        if places[at].argument == len(arguments):
            arguments.append(columns[at])
    return places, arguments


def _affine(argument: int, values: Sequence[int], column: Sequence[int]) -> _Affine | None:
    """A column as a function of an argument's values, of which two differ; None where it is none."""
    other = next(n for n, value in enumerate(values) if value != values[0])
    factor, rest = divmod(column[other] - column[0], values[other] - values[0])
    offset = column[0] - factor * values[0]
    fits = all(factor * value + offset == number for value, number in zip(values, column, strict=True))
    return _Affine(argument, factor, offset) if fits and not rest else None


def _with_numbers(func: tirx.PrimFunc, replaced: _Replace) -> tirx.PrimFunc:
    """A function in which each number that may be an argument is replaced, in the order of the code."""

    def number(value: Expr) -> Expr:
        return replaced(value) if isinstance(value, tirx.IntImm) and str(value.ty.dtype) == "int32" else value

    def operation(node: Expr) -> Expr:
        a, b = number(node.a), number(node.b)
        return node if a is node.a and b is node.b else type(node)(a, b)

    def loop(node: tirx.For) -> tirx.Stmt:
        if node.kind != tirx.ForKind.SERIAL or not _has_barrier(node):
            return node
        return tirx.For(
            node.loop_var, node.min, number(node.extent), node.kind, node.body, node.thread_binding, node.annotations
        )

    rules = [(tirx.For, loop), *((kind, operation) for kind in (*_COMPARED, *_ADDED))]
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))


def _has_barrier(loop: tirx.For) -> bool:
    found: list[bool] = []

    def call(node: Call) -> None:
        found.append(getattr(node.args[0], "value", None) == "rammer_rtask_barrier" if len(node.args) else False)

    tvm_ffi.structural_walk(loop.body, (Call, call), order="pre")
    return any(found)


def _declarations(func: tirx.PrimFunc) -> list[tirx.DeclBuffer]:
    """The arrays behind a function's pointers, in the order of these: that of the code may be any.

    An array of another type in the place of one of them is none.
    """
    found: list[tirx.DeclBuffer] = []
    tvm_ffi.structural_walk(func.body, (tirx.DeclBuffer, found.append), order="pre")
    position = {param: n for n, param in enumerate(func.params)}
    own = [declared for declared in found if declared.data in position]
    return sorted(own, key=lambda declared: position[declared.data])


def _sizes(func: tirx.PrimFunc) -> list[int]:
    """Elements of each of these arrays."""
    return [int(declared.buffer.shape[0]) for declared in _declarations(func)]


def _with_sizes(func: tirx.PrimFunc, sizes: Sequence[int]) -> tirx.PrimFunc:
    """The same code with arrays of other sizes, of which it does not depend, all declared at its beginning."""
    declared = _declarations(func)
    arrays = {
        one.buffer: tirx.decl_buffer(
            (size,), str(one.buffer.dtype), one.buffer.name, data=one.data, scope=str(one.buffer.scope())
        )
        for one, size in zip(declared, sizes, strict=False)
    }
    nothing = tirx.Evaluate(tirx.IntImm("int32", 0))
    left_out = set(declared)
    body = tvm_ffi.structural_map(
        func.body, (tirx.DeclBuffer, lambda one: nothing if one in left_out else one), order="post"
    )
    body = tvm_ffi.structural_map(body, (tirx.Var, lambda var: arrays.get(var, var)), order="post")
    heads = [tirx.DeclBuffer(arrays[one.buffer], data=one.data) for one in declared]
    return func.with_body(tirx.SeqStmt([*heads, body]))


def _chooses_registers(func: tirx.PrimFunc, arguments: Sequence[tirx.Var]) -> bool:
    """Whether an index of an array of registers depends on an argument: such an array would be in memory."""
    known = set(arguments)
    found: list[bool] = []

    def depends(value: Expr) -> bool:
        return bool(known & set(tirx.analysis.undefined_vars(value)))

    def bind(node: tirx.Bind) -> None:
        if depends(node.value):
            known.add(node.var)

    def access(node: TensorLoad | tirx.BufferStore) -> None:
        array = node.source if isinstance(node, TensorLoad) else node.buffer
        found.append(str(array.scope()) == "local" and any(depends(index) for index in node.indices))

    rules = [(tirx.Bind, bind), (TensorLoad, access), (tirx.BufferStore, access)]
    tvm_ffi.structural_walk(func.body, rules, order="pre")
    return any(found)
