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
    Registers are given out to warps, 256 at a time; each block reserves 1 KB of shared memory.
    """
    if unit.kind == "cpu":
        return 1
    if threads > unit.threads_per_block or shared_bytes > unit.shared_per_block:
        return 0
    warps = -(-threads // unit.warp)
    by_registers = unit.registers_per_unit // max(1, warps * (-(-registers * unit.warp // 256) * 256))
    by_threads = unit.threads_per_unit // (warps * unit.warp)
    by_shared = unit.unit_bytes // (shared_bytes + 1024)
    return min(by_registers, by_threads, by_shared, unit.blocks_per_unit)
