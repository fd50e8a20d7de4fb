"""What memory traffic costs: which cache holds an operator's bytes, and how fast they come from it."""

from dataclasses import replace

import pytest

from tvm_rammer.device import host_cpu
from tvm_rammer.rkernel_gen.cpu.cost import traffic_us

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
