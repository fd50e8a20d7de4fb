"""Arithmetic whose result is defined for every value: TVM's own drops NaN, and divides by whatever comes.

A kernel is written, identified and measured with TVM's operators. What is done here comes after that, on the way to the
code generator.

    max, min    NaN where either is NaN, as in NumPy and ONNX Runtime
    !=          true of NaN
    /, %        of integers by 0: 0; the least integer by -1: itself, with the remainder 0
    <<, >>      by as many bits as there are, by more, or by fewer than none: nothing is left but copies of the sign
    bfloat16    on a CPU, a number is rounded where it becomes one: TVM computes in float32, and may leave the cast out
"""

import math
from collections.abc import Callable
from functools import partial

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import Expr, TensorLoad
from tvm.tirx.buffer import BufferType


def DefineArithmetic(kind: str) -> tvm.transform.Pass:
    """Make the pass that calls `define_arithmetic` for every PrimFunc.

    Parameters
    ----------
    kind : {"llvm", "cuda"}
        Of the target.
    """

    @tvm.transform.module_pass(opt_level=0, name="DefineArithmetic")  # type: ignore[untyped-decorator]  # TVM's are
    def run(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = mod.clone()
        for var, func in mod.functions.items():
            if isinstance(func, tirx.PrimFunc):
                mod.update_func(var, define_arithmetic(func, kind))
        return mod

    return run


def define_arithmetic(func: tirx.PrimFunc, kind: str) -> tirx.PrimFunc:
    """Rewrite what is undefined, or drops NaN, for some values. What constants rule out stays as it is.

    Parameters
    ----------
    func : tirx.PrimFunc
        For a GPU, one that TVM has lowered up to its split of host and device: before that it knows reductions over
        threads by their `max`, and cannot eliminate common subexpressions where there is a `Let`.
    kind : {"llvm", "cuda"}
        Of the target.
    """
    if kind == "llvm":
        func = func.with_body(_with_long_extremes(func.body))
    extreme = _extreme_on_gpu if kind == "cuda" else _extreme
    sizes = _sizes(func)
    rules: list[tuple[type, Callable[..., Expr]]] = [
        (tirx.Max, extreme),
        (tirx.Min, extreme),
        (tirx.NE, _not_equal),
        *((operator, partial(_quotient, sizes=sizes)) for operator in (tirx.Div, tirx.FloorDiv)),
        *((operator, partial(_remainder, sizes=sizes)) for operator in (tirx.Mod, tirx.FloorMod)),
        (tirx.LShift, _left_shift),
        (tirx.RShift, _right_shift),
    ]
    if kind == "llvm":
        rules.append((tirx.Cast, _cast))
    return func.with_body(tvm_ffi.structural_map(func.body, rules, order="post"))


def larger(old: Expr, new: Expr) -> Expr:
    """The larger one of two numbers; the old one where the new one is none. A maximum would be NaN then."""
    return tirx.Select(new > old, new, old)


def _extreme(node: tirx.Max | tirx.Min) -> Expr:
    """On x86 and by LLVM's choice, the second operand remains where either is NaN: only the first needs a test.

    That is a constant, or else what can be repeated at no cost; rather the first one, an accumulator, than an element:
    LLVM takes exponential time for a chain of tests of the same number, and, where the other operand has branches, for
    any chain of tests that it knows to be such: so their bits are looked at.
    """
    if not _is_float(node):
        return node
    first, second = node.a, node.b
    if _is_number(second) or (not _is_plain(first) and _is_plain(second)):
        first, second = second, first
    if _is_number(first):
        return type(node)(first, second)
    test = equals_itself if _is_plain(second) else _has_bits_of_number
    return _repeated(lambda one: tirx.Select(test(one), type(node)(one, second), one), first)


LONG_CHAIN = 9
"""An extreme of more numbers than this is one instruction of LLVM's a number, rather than a test and a choice: choices
of 14, in two loops, took LLVM 14 s, and of 15 minutes."""


def _with_long_extremes(body: tirx.Stmt) -> tirx.Stmt:
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
    if not isinstance(value, tirx.Max | tirx.Min) or _scalar(value) not in ("float32", "float64"):
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


def _has_bits_of_number(value: Expr) -> Expr:
    """Whether no bit is set below an exponent of ones: the same as `equals_itself`, in integers."""
    unsigned = _unsigned(value)
    all_but_sign, infinity = (1 << (_bits(value) - 1)) - 1, _BITS_OF_INFINITY[_scalar(value)]
    bits = tirx.reinterpret(unsigned, value)
    return (bits & _same(bits, all_but_sign)) <= _same(bits, infinity)


_BITS_OF_INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def _is_plain(value: Expr) -> bool:
    return _is_number(value) or isinstance(value, tirx.Var | TensorLoad)


def _extreme_on_gpu(node: tirx.Max | tirx.Min) -> Expr:
    """CUDA's functions give the number where one operand is NaN. TVM prints no choices between vectors: by element."""
    if not _is_float(node):
        return node
    a, b = (node.b, node.a) if _is_number(node.b) else (node.a, node.b)
    names = tirx.Var("a", a.ty), tirx.Var("b", b.ty)
    always = _is_number(a)

    def chosen(first: Expr, second: Expr) -> Expr:
        better = first > second if isinstance(node, tirx.Max) else first < second
        best = tirx.Select(better, first, second)
        return best if always else tirx.Select(equals_itself(first), best, first)

    lanes = range(_lanes(node))
    each = [chosen(*(tirx.Shuffle([name], [lane]) for name in names)) for lane in lanes]
    value = chosen(*names) if len(lanes) == 1 else tirx.Shuffle(each, list(lanes))
    return tirx.Let(names[0], a, tirx.Let(names[1], b, value))


def equals_itself(value: Expr) -> Expr:
    """Whether a number is no NaN. TVM would take `value == value` for true; LLVM sees through this one.

    Parameters
    ----------
    value : Expr
        Of floating point, and computed twice.
    """
    bits = tirx.reinterpret(_unsigned(value), value)
    return tirx.EQ(tirx.reinterpret(str(value.ty.dtype), bits), value)


def _unsigned(value: Expr) -> str:
    """The type of integers that are as wide."""
    return str(value.ty.dtype).replace("bfloat", "uint").replace("float", "uint")


def _cast(node: tirx.Cast) -> Expr:
    """To bfloat16 by the bits of float32: to the nearest number, or the one of two whose last bit is 0."""
    if not _scalar(node).startswith("bfloat16") or _scalar(node.value).startswith("bfloat16"):
        return node
    dtype = str(node.ty.dtype).replace("bfloat16", "float32")
    wide = node.value if str(node.value.ty.dtype) == dtype else tirx.Cast(tvm.ir.PrimType(dtype), node.value)
    return _repeated(lambda value: tirx.Cast(node.ty, _rounded(value)), wide)


def _rounded(wide: Expr) -> Expr:
    """A number of float32 with the lower half of its bits rounded away."""
    bits = tirx.reinterpret(_unsigned(wide), wide)
    half = ((bits >> _same(bits, 16)) & _same(bits, 1)) + _same(bits, 0x7FFF)
    rounded = tirx.reinterpret(str(wide.ty.dtype), (bits + half) & _same(bits, 0xFFFF0000))
    return tirx.Select(_has_bits_of_number(wide), rounded, wide)


def _not_equal(node: tirx.NE) -> Expr:
    """In LLVM TVM's test is false of NaN, and it would make that test of a negated one for equality."""
    if not _is_float(node.a):
        return node
    equal = tirx.EQ(node.a, node.b)
    return tirx.Select(equal, _same(equal, False), _same(equal, True))


def _sizes(func: tirx.PrimFunc) -> set[tirx.Var]:
    """Variables that are a whole dimension of an argument, so none is below 0."""
    buffers = [param for param in func.params if isinstance(param.ty, BufferType)]
    return {size for buffer in buffers for size in buffer.shape if isinstance(size, tirx.Var)}


def _quotient(node: tirx.Div | tirx.FloorDiv, sizes: set[tirx.Var]) -> Expr:
    """By 0 it is 0 by 1. No choice is around the division: TVM would take its condition for known within."""
    if not _may_fail(node):
        return node
    zero = _same(node.b, 0)

    def quotient(a: Expr, b: Expr) -> Expr:
        return type(node)(tirx.Select(tirx.EQ(b, zero), zero, a), _divisor(a, b, sizes))

    return _repeated(quotient, node.a, node.b)


def _remainder(node: tirx.Mod | tirx.FloorMod, sizes: set[tirx.Var]) -> Expr:
    """By 1, in the place of what it cannot be divided by: that is 0."""
    if not _may_fail(node):
        return node
    return _repeated(lambda a, b: type(node)(a, _divisor(a, b, sizes)), node.a, node.b)


def _may_fail(node: tirx.Div | tirx.FloorDiv | tirx.Mod | tirx.FloorMod) -> bool:
    divisor = _element(node.b)
    return not _is_float(node) and not (isinstance(divisor, tirx.IntImm) and divisor.value not in (0, -1))


def _divisor(a: Expr, b: Expr, sizes: set[tirx.Var]) -> Expr:
    """The divisor `b` of `a`, or 1 where the quotient by it is not defined.

    A size is never -1, so `a` need not be repeated: a flat index is divided by one size after the other, and would
    double with each.
    """
    if b in sizes:
        return tirx.max(b, _same(b, 1))
    undefined = tirx.EQ(b, _same(b, 0))
    if _scalar(b).startswith("int"):
        # By its bits: TVM knows of no integer that is as small, and would take `a == least` for false.
        is_least = tirx.EQ(a ^ _same(a, tirx.min_value(_scalar(a)).value), _same(a, 0))
        undefined = tirx.Or(undefined, tirx.And(tirx.EQ(b, _same(b, -1)), is_least))
    return tirx.Select(undefined, _same(b, 1), b)


def _left_shift(node: tirx.LShift) -> Expr:
    if _stays_within(node):
        return node
    return _repeated(lambda b: tirx.Select(_within(b), node.a << b, _same(node, 0)), node.b)


def _right_shift(node: tirx.RShift) -> Expr:
    if _stays_within(node):
        return node
    if not _scalar(node).startswith("int"):
        return _repeated(lambda b: tirx.Select(_within(b), node.a >> b, _same(node, 0)), node.b)
    return _repeated(lambda b: node.a >> tirx.Select(_within(b), b, _same(b, _bits(node) - 1)), node.b)


def _stays_within(node: tirx.LShift | tirx.RShift) -> bool:
    distance = _element(node.b)
    return isinstance(distance, tirx.IntImm) and 0 <= distance.value < _bits(node)


def _within(distance: Expr) -> Expr:
    inside = distance < _same(distance, _bits(distance))
    return tirx.And(distance >= _same(distance, 0), inside) if _scalar(distance).startswith("int") else inside


def _repeated(use: Callable[..., Expr], *operands: Expr) -> Expr:
    """`use(*operands)`, which uses them several times; those that bind names are bound to one themselves.

    TVM's analysis refuses an expression that binds a name twice, if it simplifies the two values differently.
    """
    names = [tirx.Var("operand", value.ty) if _binds(value) else value for value in operands]
    result = use(*names)
    for name, value in zip(names, operands, strict=True):
        if not name.same_as(value):
            result = tirx.Let(name, value, result)
    return result


def _binds(value: Expr) -> bool:
    found: list[tirx.Let] = []
    tvm_ffi.structural_walk(value, [(tirx.Let, found.append)], order="pre")
    return bool(found)


def _same(like: Expr, number: float) -> Expr:
    """A constant of an expression's type, which may be a vector."""
    value = tirx.const(number, _scalar(like))
    lanes = _lanes(like)
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def _lanes(value: Expr) -> int:
    return int(str(value.ty.dtype).partition("x")[2] or 1)


def _element(value: Expr) -> Expr:
    return value.value if isinstance(value, tirx.Broadcast) else value


def _is_number(value: Expr) -> bool:
    """Whether it is a constant other than NaN."""
    value = _element(value)
    return isinstance(value, tirx.FloatImm) and not math.isnan(value.value)


def _is_float(value: Expr) -> bool:
    return _scalar(value).startswith(("float", "bfloat"))


def _bits(value: Expr) -> int:
    return int(_scalar(value).lstrip("abcdefghijklmnopqrstuvwxyz"))


def _scalar(value: Expr) -> str:
    """The name of an expression's type, or of its elements' where it is a vector."""
    return str(value.ty.dtype).partition("x")[0]
