"""How many blocks of a kernel a streaming multiprocessor holds at once."""

from typing import Protocol


class Limits(Protocol):
    """The limits of a unit that decide how many blocks it holds; a `DeviceSpec` has them."""

    @property
    def kind(self) -> str: ...
    @property
    def threads_per_unit(self) -> int: ...
    @property
    def threads_per_block(self) -> int: ...
    @property
    def registers_per_unit(self) -> int: ...
    @property
    def blocks_per_unit(self) -> int: ...
    @property
    def shared_per_block(self) -> int: ...
    @property
    def unit_bytes(self) -> int: ...
    @property
    def warp(self) -> int: ...


_PARTS = 4
"""Schedulers of a unit, each with registers of its own."""

_SHARED_UNIT, _RESERVED_SHARED = 128, 1024
"""A block's shared memory is a multiple of the first; each block reserves the second of it."""


def resident_blocks(unit: Limits, threads: int, registers: int, shared_bytes: int) -> int:
    """Blocks of a kernel that one unit holds at once (0: not even one).

    Parameters
    ----------
    unit : Limits
        A CPU's unit holds one.
    threads : int
        Threads of a block.
    registers : int
        Registers of a thread, as ptxas reports them.
    shared_bytes : int
        Static and dynamic shared memory of a block.

    Notes
    -----
    As `cuda_occupancy.h` counts: a unit has four parts, each with its own registers, of which it gives a warp 256 at a
    time; a block's shared memory is a multiple of 128 bytes, and each block reserves 1 KB of it.
    """
    if unit.kind == "cpu":
        return 1
    if threads > unit.threads_per_block or shared_bytes > unit.shared_per_block:
        return 0
    warps = -(-threads // unit.warp)
    of_warp = max(1, -(-registers * unit.warp // 256) * 256)
    if of_warp * (-(-warps // _PARTS) * _PARTS) > unit.registers_per_unit:
        return 0
    by_registers = unit.registers_per_unit // _PARTS // of_warp * _PARTS // warps
    by_threads = unit.threads_per_unit // (warps * unit.warp)
    by_shared = unit.unit_bytes // (-(-shared_bytes // _SHARED_UNIT) * _SHARED_UNIT + _RESERVED_SHARED)
    return min(by_registers, by_threads, by_shared, unit.blocks_per_unit)


def shared_bytes_of(unit: Limits, blocks: int) -> int:
    """Shared memory that each of so many blocks of a unit may have, in bytes; 0 on a CPU."""
    if unit.kind == "cpu":
        return 0
    each = unit.unit_bytes // blocks // _SHARED_UNIT * _SHARED_UNIT - _RESERVED_SHARED
    return max(0, min(unit.shared_per_block, each))
