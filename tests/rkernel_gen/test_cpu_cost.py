"""What the cost model of a CPU says of memory traffic, and of functions of elements."""

from dataclasses import replace

import pytest
import tvm
from tvm import relax
from tvm.relax import op

from tests.functions import fused
from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.cost import stream_us, traffic_us
from tvm_rammer.rkernel_gen.cpu.generic.cost import generic_us

DEVICE = replace(
    host_cpu(), units=2, unit_bytes=2 << 20, cache_bytes=64 << 20, cache_gbps=64.0, memory_gbps=16.0, clock_ghz=4.0
)
"""A byte takes 1 / 200,000 us from a core's own cache, 1 / 32,000 from the shared one, 1 / 8,000 from memory."""
OWN, SHARED, MEMORY = 1 / 200_000, 1 / 32_000, 1 / 8_000


@pytest.mark.parametrize(
    ("mib", "rtasks", "a_byte_us"),
    [
        (1, 1, OWN), (3, 1, SHARED), (3, 2, OWN), (3, 100, OWN), (6, 2, SHARED), (6, 1, SHARED), (100, 2, MEMORY),
        (2.25, 1, (OWN + SHARED) / 2),
    ],
)  # fmt: skip
def test_as_many_caches_hold_the_bytes_as_there_are_rtasks(mib, rtasks, a_byte_us):
    assert traffic_us(mib * 2**20, 1000, rtasks, DEVICE) == pytest.approx(1000 * a_byte_us)


def test_the_shared_cache_is_never_faster_than_a_cores_own():
    fast = replace(DEVICE, cache_gbps=10_000.0)
    assert traffic_us(6 << 20, 1000, 2, fast) == traffic_us(1 << 20, 1000, 2, fast)


def test_what_is_written_is_read_before():
    device = replace(DEVICE, unit_gbps=100.0)
    assert stream_us(1e6, 0, 1, device) == pytest.approx(10)
    assert stream_us(0, 1e6, 1, device) == pytest.approx(20)
    assert stream_us(1e6, 1e6, 2, device) == pytest.approx(15)


def test_streams_are_as_other_traffic_beyond_a_cores_own_cache():
    device = replace(DEVICE, unit_gbps=100.0)
    for mib in (8, 200):
        assert stream_us(mib << 19, mib << 19, 2, device) == pytest.approx(traffic_us(mib << 20, mib << 19, 2, device))


SHAPE = (64, 256)


def predicted(build, *others):
    return generic_us(fused([SHAPE, *others], build), 1, 8, SHAPE, host_cpu())


@pytest.mark.parametrize(
    "of_rows", [lambda x, s: op.divide(x, op.sqrt(s)), lambda x, s: op.multiply(x, op.tanh(s))], ids=["root", "tanh"]
)
def test_what_is_the_same_in_a_row_is_computed_once(of_rows):
    assert predicted(of_rows, (64, 1)) < 1.5 * predicted(op.multiply, (64, 1))
    assert predicted(of_rows, SHAPE) > 1.5 * predicted(of_rows, (64, 1))


def test_a_quotient_that_is_rounded_stays_one():
    assert predicted(lambda x, s: op.round(op.divide(x, s)), (64, 1)) > 1.5 * predicted(op.round)


def sliced(begin, step):
    return predicted(lambda x: op.strided_slice(x, [1], [begin], [256], [step]))


def test_neighbours_that_lie_apart_are_gathered():
    assert sliced(0, 2) > 1.5 * sliced(128, 1)


def test_rows_are_copied_and_elements_gathered():
    builder, times = relax.BlockBuilder(), []
    x, i = (relax.Var(n, relax.TensorType(s, d)) for n, s, d in (("x", SHAPE, "float32"), ("i", (64,), "int64")))
    for axis in (0, 1):
        with builder.function(f"take{axis}", [x, i]):
            builder.emit_func_output(builder.emit_te(tvm.topi.take, x, i, axis))
        func = builder.get()["take" if axis == 0 else "take1"]
        times.append(generic_us(func, 1, 8, (64, 256) if axis == 0 else (64, 64), host_cpu()))
    assert times[1] > times[0]


def test_a_search_for_the_largest_takes_longer_than_a_sum():
    assert predicted(lambda x: op.max(x, -1)) > 1.5 * predicted(lambda x: op.sum(x, -1))
