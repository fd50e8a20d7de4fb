"""The rTasks of a scheduled kernel for an AMD GPU, as far as LLVM's IR and assembly.

Nothing of it was run, and there is no persistent kernel: a block of the launch is an rTask. It shows that schedules
which are made for CUDA become code for wave fronts of 32 and 64 threads, and which resources that takes. Neither ROCm
nor a GPU is needed.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import tvm
import tvm_ffi
from tvm import tirx

from ..errors import CodegenError, last_line
from ..kernel import ScheduledKernel

_CALLBACKS = ("tvm_callback_rocm_bitcode_path", "tvm_callback_rocm_link")
_MOST_THREADS = 256
"""Of a block: what TVM tells LLVM where no AMD GPU is there to be asked."""


@dataclass(frozen=True, slots=True)
class RocmCode:
    """The code of a kernel for an AMD GPU.

    Parameters
    ----------
    ir : str
        LLVM's, optimised.
    assembly : str
    registers, spilled : int
        Vector registers of a thread, and those of them that are spilled.
    shared_bytes : int
        Of a block.
    wave : int
        Threads of a wave front.
    """

    ir: str
    assembly: str
    registers: int
    spilled: int
    shared_bytes: int
    wave: int


def rocm_code(kernel: ScheduledKernel, arch: str) -> RocmCode:
    """Compile a scheduled kernel for an AMD GPU.

    Parameters
    ----------
    kernel : ScheduledKernel
        Made for CUDA: its blocks are the rTasks.
    arch : str
        Such as gfx90a or gfx1100.

    Raises
    ------
    CodegenError
        TVM does not know the architecture; the kernel has instructions of NVIDIA's, or blocks that are too large; or
        it calls functions of ROCm's device library.

    Notes
    -----
    TVM would link the code by ROCm's linker, with ROCm's library; meanwhile both are replaced, for all threads.
    """
    name = kernel.spec.name
    if kernel.spec.threads > _MOST_THREADS:
        raise CodegenError(
            f"{name} has {kernel.spec.threads} threads an rTask, and TVM makes blocks of {_MOST_THREADS} for {arch}: "
            "choose a tiling with fewer"
        )
    func = kernel.func.with_attr("global_symbol", name).with_attr("tirx.is_scheduled", True)
    try:
        target = tvm.target.Target({"kind": "rocm", "mcpu": arch, "host": {"kind": "llvm"}})
        with _without_rocm():
            module = tirx.build(tvm.IRModule({name: func}), target=target).imports[0]
            ir, assembly = (str(module.inspect_source(form)) for form in ("llvm", "asm"))
    except Exception as error:  # TVM's errors have no common class below this one
        unknown = re.search(r'unknown intrinsic .*?name="([\w.]+)"', str(error))
        why = f"TVM has no {unknown[1]} for AMD" if unknown else last_line(error)
        raise CodegenError(f"{name} does not compile for {arch}: {why}") from error
    called = sorted(set(re.findall(r"^declare [^@]*@(?!llvm\.)([\w.]+)", ir, re.MULTILINE)))
    if called:
        raise CodegenError(f"{name} calls {', '.join(called)} of ROCm's device library for {arch}, which is not linked")

    def fact(key: str) -> int:
        found = re.search(rf"^\s*\.{key}:\s+(\d+)$", assembly, re.MULTILINE)
        if found is None:
            raise CodegenError(f"the assembly of {name} for {arch} does not say its {key}: LLVM has no kernel of it")
        return int(found[1])

    return RocmCode(
        ir, assembly, fact("vgpr_count"), fact("vgpr_spill_count"), fact("group_segment_fixed_size"),
        fact("wavefront_size"),
    )  # fmt: skip


@contextmanager
def _without_rocm() -> Iterator[None]:
    """Let TVM keep object code as it is, where it would look for ROCm's library and linker."""
    before = {name: tvm.get_global_func(name) for name in _CALLBACKS}
    library, link = _CALLBACKS
    tvm_ffi.register_global_func(library, lambda *_: [], override=True)
    tvm_ffi.register_global_func(link, bytearray, override=True)
    try:
        yield
    finally:
        for name, function in before.items():
            tvm_ffi.register_global_func(name, function, override=True)
