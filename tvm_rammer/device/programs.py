"""The programs that measure a processor, in TVM's IR: a chain, multiply-adds, reads."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tvm

STEPS = 20_000
"""Iterations of the programs that do not read memory."""
CHAIN, CHAIN_CYCLES = 4, 4
"""Steps of an iteration of the dependent chain, and cycles of each: a multiplication of integers takes three, and an
exclusive or one."""
ACCUMULATORS = 12
"""Independent multiply-adds: enough to hide a latency of four cycles, two a cycle, in the registers of SSE and AVX2."""
STREAMS = 4
"""Vectors that are read in an iteration."""


def loop(extent: Any, body: "Callable[[Any], Any]", kind: str = "SERIAL") -> Any:
    """A loop; `extent` may be known at run time alone."""
    from tvm import tirx

    var = tirx.Var("i", "int64")
    extent = tirx.IntImm("int64", extent) if isinstance(extent, int) else extent
    return tirx.For(var, tirx.IntImm("int64", 0), extent, getattr(tirx.ForKind, kind), body(var))


def vectors(count: int, lanes: int, body: "Callable[[int, Any], Any]") -> Any:
    """Do `body(vector, element)` for some vectors, unrolled."""
    from tvm import tirx

    statements = [loop(lanes, partial(body, number), "VECTORIZED") for number in range(count)]
    return tirx.SeqStmt(statements) if count > 1 else statements[0]


def dependent_chain() -> "tvm.tirx.PrimFunc":
    """A chain of integer operations, each of which needs the one before."""
    from tvm import tirx

    words = tirx.decl_buffer((2,), "int64", "words")
    state = tirx.decl_buffer((1,), "int64", "state", scope="local")
    value = state[0]
    for _ in range(CHAIN):
        value = tirx.bitwise_xor(value * value, words[1])
    steps = loop(STEPS, lambda i: tirx.BufferStore(state, value, [0]))
    body = [tirx.AllocBuffer(state), tirx.BufferStore(state, words[0], [0]), steps]
    return tirx.PrimFunc([words], tirx.SeqStmt([*body, tirx.BufferStore(words, state[0], [0])]))


def multiply_adds(lanes: int) -> "tvm.tirx.PrimFunc":
    """Independent multiply-adds of vectors in registers."""
    from tvm import tirx

    data = tirx.decl_buffer((ACCUMULATORS + 2, lanes), "float32", "data")
    acc = tirx.decl_buffer((ACCUMULATORS, lanes), "float32", "acc", scope="local")

    def step(a: int, e: Any) -> Any:
        value = acc[a, e] * data[ACCUMULATORS, e] + data[ACCUMULATORS + 1, e]
        return tirx.BufferStore(acc, value, [a, e])

    parts = [
        tirx.AllocBuffer(acc),
        vectors(ACCUMULATORS, lanes, lambda a, e: tirx.BufferStore(acc, data[a, e], [a, e])),
        loop(STEPS, lambda i: vectors(ACCUMULATORS, lanes, step)),
        vectors(ACCUMULATORS, lanes, lambda a, e: tirx.BufferStore(data, acc[a, e], [a, e])),
    ]
    return tirx.PrimFunc([data], tirx.SeqStmt(parts)).with_attr("tirx.noalias", True)


def reads(lanes: int) -> "tvm.tirx.PrimFunc":
    """Sums over a buffer, some times."""
    from tvm import tirx

    count, repeats = (tirx.Var(name, "int64") for name in ("count", "repeats"))
    data = tirx.decl_buffer((count * STREAMS * lanes,), "float32", "data")
    out = tirx.decl_buffer((lanes,), "float32", "out")
    acc = tirx.decl_buffer((STREAMS, lanes), "float32", "acc", scope="local")

    def add(i: Any) -> Any:
        at = i * (STREAMS * lanes)
        return vectors(STREAMS, lanes, lambda s, e: tirx.BufferStore(acc, acc[s, e] + data[at + s * lanes + e], [s, e]))

    def store(e: Any) -> Any:
        return tirx.BufferStore(out, sum((acc[s, e] for s in range(1, STREAMS)), start=acc[0, e]), [e])

    parts = [
        tirx.AllocBuffer(acc),
        vectors(STREAMS, lanes, lambda s, e: tirx.BufferStore(acc, tirx.FloatImm("float32", 0.0), [s, e])),
        loop(repeats, lambda r: loop(count, add)),
        loop(lanes, store, "VECTORIZED"),
    ]
    return tirx.PrimFunc([data, out, count, repeats], tirx.SeqStmt(parts)).with_attr("tirx.noalias", True)
