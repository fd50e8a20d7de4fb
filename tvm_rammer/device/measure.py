"""Measures this machine's processor: its clock, its multiply-adds, bandwidths of caches and memory, costs of signals.

The programs are made by TVM, as kernels are, so they have the target's vectors. Each is run many times for a
thousandth of a second or so, and the fastest run counts: other processes only make them slower. Figures are rounded:
the clock to quarters of a GHz, operations to a power of two, all others to a power of the square root of two.
"""

import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..debug import say
from .cores import two_processors
from .exchange import exchanges, signal_us, wake_us
from .measured import Measured
from .spec import DeviceSpec

if TYPE_CHECKING:
    import tvm

RUNS, SECONDS = 300, 0.3
"""Runs of a program, and time for all of them, at most."""
STEPS = 20_000
"""Iterations of the programs that do not read memory."""
CHAIN, CHAIN_CYCLES = 4, 4
"""Steps of an iteration of the dependent chain, and cycles of each: a multiplication of integers takes three, and an
exclusive or one."""
ACCUMULATORS = 12
"""Independent multiply-adds: enough to hide a latency of four cycles, two a cycle, in the registers of SSE and AVX2."""
STREAMS = 4
"""Vectors that are read in an iteration."""
BYTES_READ = 4 << 20
"""Bytes that a run reads, at least."""
MEMORY_CACHES = 3
"""Memory is measured with a buffer of so many last-level caches."""
MOST_BYTES = 256 << 20


def measure_cpu(device: DeviceSpec) -> Measured:
    """Measure the processor; takes a second or two.

    Parameters
    ----------
    device : DeviceSpec
        This machine's processor: its vectors, its caches and how many cores to use. Where they are not two, what
        signals cost is its, too.
    """
    say(1, "measuring this processor, once: its clock, its vectors, its caches")
    lanes = device.vector_bytes // 4
    functions = {"chain": _chain(), "fma": _multiply_adds(lanes), "read": _reads(lanes)}
    functions |= exchanges()
    programs = _compile(functions, device)
    chain, fma, read, words, sleep, wake = (programs[name] for name in functions)  # to look a function up takes long
    clock_ghz = STEPS * CHAIN * CHAIN_CYCLES / _fastest(chain, _tensor(np.array([3, 5], "int64"))) / 1e9
    vectors = _tensor(np.full((ACCUMULATORS + 2, lanes), 0.5, "float32"))
    flops = STEPS * ACCUMULATORS * lanes * 2 / _fastest(fma, vectors) / 1e9

    def gbps(nbytes: int, cores: int = 1) -> float:
        return _gbps(read, nbytes, lanes, cores)

    pair = two_processors()
    memory = min(MOST_BYTES, MEMORY_CACHES * device.cache_bytes)
    return Measured(
        clock_ghz=max(0.25, round(clock_ghz * 4) / 4),
        flops_per_cycle=2 ** max(1, round(math.log2(flops / clock_ghz))),
        unit_gbps=_rounded(gbps(device.unit_bytes // 2)),
        core_cache_gbps=_rounded(gbps(max(2 * device.unit_bytes, device.cache_bytes // 8))),
        memory_gbps=_rounded(max(gbps(memory), gbps(memory, device.units))),
        signal_us=_rounded(signal_us(words, pair)) if pair else device.signal_us,
        wake_us=_rounded(wake_us(sleep, wake, pair)) if pair else device.wake_us,
    )


def _gbps(read: Callable[..., object], nbytes: int, lanes: int, cores: int) -> float:
    """The rate at which cores read `nbytes` bytes in all, again and again, each a part of its own, in GB/s."""
    count = nbytes // (4 * STREAMS * lanes * cores)
    repeats = max(1, BYTES_READ // nbytes)
    parts = [
        (_tensor(np.zeros(count * STREAMS * lanes, "float32")), _tensor(np.zeros(lanes, "float32")))
        for _ in range(cores)
    ]

    def together() -> None:
        others = [threading.Thread(target=read, args=(*part, count, repeats)) for part in parts[1:]]
        for other in others:
            other.start()
        read(*parts[0], count, repeats)
        for other in others:
            other.join()

    return repeats * cores * count * STREAMS * lanes * 4 / _fastest(together) / 1e9


def _rounded(value: float) -> float:
    return float(f"{2 ** (round(2 * math.log2(value)) / 2):.3g}")


def _tensor(array: "np.ndarray[Any, Any]") -> Any:
    import tvm

    return tvm.runtime.tensor(array)


def _fastest(run: Callable[..., object], *arguments: object) -> float:
    """Seconds of the fastest of some runs."""
    best, end = math.inf, time.perf_counter() + SECONDS
    for _ in range(RUNS):
        begin = time.perf_counter()
        run(*arguments)
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            break
    return best


def _compile(functions: "dict[str, tvm.tirx.PrimFunc]", device: DeviceSpec) -> Any:
    import tvm

    named = {name: func.with_attr("global_symbol", name).with_attr("s_tir", True) for name, func in functions.items()}
    return tvm.compile(tvm.IRModule(named), tvm.target.Target(device.target_config()))


def _for(extent: Any, body: "Callable[[Any], Any]", kind: str = "SERIAL") -> Any:
    from tvm import tirx

    var = tirx.Var("i", "int64")
    extent = tirx.IntImm("int64", extent) if isinstance(extent, int) else extent
    return tirx.For(var, tirx.IntImm("int64", 0), extent, getattr(tirx.ForKind, kind), body(var))


def _vectors(count: int, lanes: int, body: "Callable[[int, Any], Any]") -> Any:
    """Do `body(vector, element)` for some vectors, unrolled."""
    from tvm import tirx

    return tirx.SeqStmt([_for(lanes, partial(body, number), "VECTORIZED") for number in range(count)])


def _chain() -> "tvm.tirx.PrimFunc":
    """A chain of integer operations, each of which needs the one before."""
    from tvm import tirx

    words = tirx.decl_buffer((2,), "int64", "words")
    state = tirx.decl_buffer((1,), "int64", "state", scope="local")
    value = state[0]
    for _ in range(CHAIN):
        value = tirx.bitwise_xor(value * value, words[1])
    steps = _for(STEPS, lambda i: tirx.BufferStore(state, value, [0]))
    body = [tirx.AllocBuffer(state), tirx.BufferStore(state, words[0], [0]), steps]
    return tirx.PrimFunc([words], tirx.SeqStmt([*body, tirx.BufferStore(words, state[0], [0])]))


def _multiply_adds(lanes: int) -> "tvm.tirx.PrimFunc":
    """Independent multiply-adds of vectors in registers."""
    from tvm import tirx

    data = tirx.decl_buffer((ACCUMULATORS + 2, lanes), "float32", "data")
    acc = tirx.decl_buffer((ACCUMULATORS, lanes), "float32", "acc", scope="local")

    def step(a: int, e: Any) -> Any:
        value = acc[a, e] * data[ACCUMULATORS, e] + data[ACCUMULATORS + 1, e]
        return tirx.BufferStore(acc, value, [a, e])

    parts = [
        tirx.AllocBuffer(acc),
        _vectors(ACCUMULATORS, lanes, lambda a, e: tirx.BufferStore(acc, data[a, e], [a, e])),
        _for(STEPS, lambda i: _vectors(ACCUMULATORS, lanes, step)),
        _vectors(ACCUMULATORS, lanes, lambda a, e: tirx.BufferStore(data, acc[a, e], [a, e])),
    ]
    return tirx.PrimFunc([data], tirx.SeqStmt(parts)).with_attr("tirx.noalias", True)


def _reads(lanes: int) -> "tvm.tirx.PrimFunc":
    """Sums over a buffer, some times."""
    from tvm import tirx

    count, repeats = (tirx.Var(name, "int64") for name in ("count", "repeats"))
    data = tirx.decl_buffer((count * STREAMS * lanes,), "float32", "data")
    out = tirx.decl_buffer((lanes,), "float32", "out")
    acc = tirx.decl_buffer((STREAMS, lanes), "float32", "acc", scope="local")

    def add(i: Any) -> Any:
        at = i * (STREAMS * lanes)
        return _vectors(
            STREAMS, lanes, lambda s, e: tirx.BufferStore(acc, acc[s, e] + data[at + s * lanes + e], [s, e])
        )

    def store(e: Any) -> Any:
        return tirx.BufferStore(out, sum((acc[s, e] for s in range(1, STREAMS)), start=acc[0, e]), [e])

    parts = [
        tirx.AllocBuffer(acc),
        _vectors(STREAMS, lanes, lambda s, e: tirx.BufferStore(acc, tirx.FloatImm("float32", 0.0), [s, e])),
        _for(repeats, lambda r: _for(count, add)),
        _for(lanes, store, "VECTORIZED"),
    ]
    return tirx.PrimFunc([data, out, count, repeats], tirx.SeqStmt(parts)).with_attr("tirx.noalias", True)
