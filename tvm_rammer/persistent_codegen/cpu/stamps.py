"""When the instructions of a stamped program ended: the profile of a real run on a CPU."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import tvm_ffi

from ...ir import RProgram

STAMPED = "tvm_rammer.stamped"
"""The packed function that a stamped program calls at its end: its name, the stamps' address and their number."""

CLOCK = """
declare i32 @clock_gettime(i32, ptr)
define internal i64 @rammer_now() alwaysinline {
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %place = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %place
  %scaled = mul i64 %s, 1000000000
  %now = add i64 %scaled, %ns
  ret i64 %now
}
"""
"""LLVM IR of the monotonic clock, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """One run of a program.

    Parameters
    ----------
    begin_us : numpy.ndarray
        When each lane began, in microseconds since the first.
    end_us : tuple of numpy.ndarray
        For each lane when each of its instructions ended, step after step.
    """

    begin_us: np.ndarray
    end_us: tuple[np.ndarray, ...]

    @property
    def makespan_us(self) -> float:
        """Until the last instruction ended."""
        return float(max((lane[-1] for lane in self.end_us if lane.size), default=0.0))


@contextmanager
def collect_stamps() -> Iterator[list[tuple[str, np.ndarray]]]:
    """Gather what stamped programs report meanwhile.

    Yields
    ------
    list of (str, numpy.ndarray)
        Of each run of a program its name and its stamps, for `read_stamps`.
    """
    found: list[tuple[str, np.ndarray]] = []

    def stamped(name: str, address: ctypes.c_void_p, count: int) -> None:
        found.append((name, np.array((ctypes.c_int64 * count).from_address(address.value or 0))))

    tvm_ffi.register_global_func(STAMPED, stamped, override=True)
    try:
        yield found
    finally:
        tvm_ffi.register_global_func(STAMPED, lambda name, address, count: None, override=True)


def read_stamps(program: RProgram, stamps: np.ndarray) -> Stamps:
    """Give the stamps of a run to the lanes."""
    lanes = len(program.lanes)
    rows = len(stamps) - lanes
    since_us = (stamps - stamps[rows : rows + lanes].min()) / 1e3
    steps = since_us[:rows].reshape(program.steps, -1)
    ends = np.split(steps, np.cumsum([len(lane) for lane in program.lanes]), axis=1)[:lanes]
    return Stamps(since_us[rows : rows + lanes], tuple(end.reshape(-1) for end in ends))
