"""RProgram -> one function per program, for TVM's own code generators (docs/architecture.md, D1, D2, D9).

In go a verified rProgram, the scheduled kernel of each operator and the values of the constants. Out comes an
`AssembledProgram`: TIR functions, and the constants that they are called with. Read in this order:

    assemble   chooses the backend; an empty library of rTask functions; what an executable imports
    assembled  what comes out
    layout     where each buffer lies: segments and byte offsets
    tables     the plan as int32 tables, which an interpreter in the generated code walks through
    calls      what rTask functions are called with: one of these tables
    run_steps  how many steps a run of a loop has
    library    rTask functions of a module, each extracted once
    share_code one rTask function for several kernels of a program, on a GPU
    cpu, cuda  the backends: one rTask as a function, the interpreter, synchronisation
    arrays     sizes of arrays in TIR, and pointers to them
    rocm       a kernel's rTasks for an AMD GPU, as text only
    reference  an interpreter in Python that shares nothing with the generated code; its rTasks in reference_rtasks
"""

from ..nvcc import Resources, measure_resources
from .assemble import assemble, rtask_library, with_imports
from .assembled import AssembledProgram
from .cpu.pipeline import PIPELINE as CPU_PIPELINE
from .cpu.spread import spread_loops
from .cpu.stamps import Stamps, collect_stamps, read_stamps
from .cpu.workers import num_workers
from .cuda.pipeline import PIPELINE as CUDA_PIPELINE
from .cuda.resources import check_residency
from .cuda.source import cuda_source
from .library import RTaskLibrary

__all__ = [
    "CPU_PIPELINE",
    "CUDA_PIPELINE",
    "AssembledProgram",
    "RTaskLibrary",
    "Resources",
    "Stamps",
    "assemble",
    "check_residency",
    "collect_stamps",
    "cuda_source",
    "measure_resources",
    "num_workers",
    "read_stamps",
    "rtask_library",
    "spread_loops",
    "with_imports",
]
