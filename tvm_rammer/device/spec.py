"""What a device is: the figures that stages may know about the hardware."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from .occupancy import resident_blocks, shared_bytes_of


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A vDevice's hardware (Rammer, 3.2).

    Parameters
    ----------
    name : str
    kind : {"cpu", "cuda"}
    arch : str
        LLVM's `mcpu` for a CPU, `sm_NN` for a GPU.
    units : int
        Cores or streaming multiprocessors.
    clock_ghz : float
    flops_per_cycle : int
        Single-precision operations (a multiply-add counts two) of one unit in one cycle.
    vector_bytes : int
        Width of a vector register (CPU) or of one thread's widest load (GPU).
    memory_gbps, cache_gbps : float
        Bandwidth of main memory and of the last-level cache, of the device as a whole, in GB/s.
    cache_bytes : int
        Size of that cache.
    unit_bytes : int
        A unit's own fast memory: L2 of a core, shared memory of an SM.
    unit_gbps : float
        Bandwidth of one unit to it, in GB/s, where it is a cache that keeps what one rTask reads for the next; else 0.
    launch_us, signal_us, barrier_us : float
        Costs in microseconds: of a launch; of a counter, from its release to the acquire that sees it; of a barrier
        over all vEUs.
    node_us : float
        From the end of a node of a CUDA graph to the start of one that depends on it, in microseconds; 0 where that is
        not known: as `launch_us`.
    wake_us : float
        What it takes until the vEUs beyond the first take part in a program, at most, in microseconds: the threads
        behind those of a CPU may sleep. 0 where all vEUs are launched together.
    threads_per_unit, threads_per_block, registers_per_unit, blocks_per_unit, shared_per_block, warp : int
        Limits of a GPU; a CPU has one thread a unit.
    step_cycles : float
        Cycles of a step of a CPU's register tile beside its multiply-adds; 0 where that is not known.
    loads_per_cycle : float
        Loads of vectors and of broadcast elements that a CPU's core does in a cycle, beside two multiply-adds.
    line_ns : float
        Of a step of a CPU's register tile of twelve pixels that reads a cache line from beyond the core's own cache,
        each on another page, in nanoseconds; 0 where that takes hardly longer than other steps, or is not known.
    dot : int
        Products of bytes that one instruction of a CPU adds to each element of a vector of int32, at most: 4 with
        AVX512-VNNI, 2 on any other x86, and 1 elsewhere.
    tf32 : bool
        Whether a GPU may multiply matrices of single precision on its tensor cores, with ten bits of mantissa (TF32).
    processor : str
        What a CPU is called: times that were measured on one do not hold on another. Empty where that is unknown.
    target : str
        The TVM target that the device was made of, as JSON; empty where it was made of its figures.
    """

    name: str
    kind: Literal["cpu", "cuda"]
    arch: str
    units: int
    clock_ghz: float
    flops_per_cycle: int
    vector_bytes: int
    memory_gbps: float
    cache_gbps: float
    cache_bytes: int
    unit_bytes: int
    launch_us: float
    signal_us: float
    barrier_us: float
    threads_per_unit: int = 1
    threads_per_block: int = 1
    registers_per_unit: int = 0
    blocks_per_unit: int = 1
    shared_per_block: int = 0
    warp: int = 1
    unit_gbps: float = 0.0
    wake_us: float = 0.0
    node_us: float = 0.0
    step_cycles: float = 0.0
    loads_per_cycle: float = 2.0
    line_ns: float = 0.0
    dot: int = 1
    tf32: bool = False
    processor: str = ""
    target: str = ""

    def target_config(self) -> dict[str, Any]:
        """The same device as the dictionary that `tvm.target.Target` takes."""
        if self.target:
            given: dict[str, Any] = json.loads(self.target)
            return given | {"num-cores": self.units} if self.kind == "cpu" else given
        if self.kind == "cpu":
            config = {"kind": "llvm", "mcpu": self.arch, "num-cores": self.units}
            # LLVM would use half of a 64-byte register in the loops that it makes vectors of itself.
            features = ["-prefer-256-bit"] if self.vector_bytes == 64 else []
            features += ["+avx512vnni"] if self.dot == 4 else []
            return config | {"mattr": features} if features else config
        return {
            "kind": "cuda",
            "arch": self.arch,
            "max_shared_memory_per_block": min(self.shared_per_block, 48 * 1024),
            "max_threads_per_block": self.threads_per_block,
            "thread_warp_size": self.warp,
            "registers_per_block": self.registers_per_unit,
            "host": {"kind": "llvm"},
        }

    @property
    def machine(self) -> str:
        """Whose instructions a CPU of this kind runs, as `platform.machine` says it; empty for this machine's."""
        triple = str(self.target_config().get("mtriple", "")) if self.kind == "cpu" else ""
        return MACHINE_NAMES.get(triple.partition("-")[0], triple.partition("-")[0])

    @property
    def compute_capability(self) -> int:
        """Of a GPU, as `sm_NN` says it: 90 for an H200; 0 where `arch` says none."""
        digits = "".join(c for c in self.arch if c.isdigit()) if self.kind == "cuda" else ""
        return int(digits or 0)

    def resident_blocks(self, threads: int, registers: int, shared_bytes: int) -> int:
        """Blocks of a kernel that one unit holds at once (`occupancy.resident_blocks`)."""
        return resident_blocks(self, threads, registers, shared_bytes)

    def shared_bytes_of(self, blocks: int) -> int:
        """Shared memory that each of so many blocks of a unit may have (`occupancy.shared_bytes_of`)."""
        return shared_bytes_of(self, blocks)


MACHINE_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
"""Other names of processors, and those by which `platform.machine` calls them."""
