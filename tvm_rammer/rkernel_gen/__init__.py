"""Several rKernels for each rOperator: tilings of its function, made by TVM schedules.

The input is rGraphs and their fused functions; the result is, for each function, the kernels that the scheduler may
choose from. Read in this order:

    tiling        what a rule is: a space of tilings with predicted times, and the code of each
    construct     chooses the few tilings of a space that are built
    cpu, cuda     the rules of each kind of device
    registered    hand-written rKernels, as one more rule
    measured      measured times, from a tuning log
    analysis      analyses of TVM functions
    footprint     which part of each buffer an rTask touches
    select        the Pareto set of a function's kernels
    make_kernels  all of these, for a whole module
"""

from .analysis.copies import find_copies
from .make_kernels import Kernels, constant_parameters, make_kernels
from .measured import Measurements
from .registered import CudaSource, TirKernel, register_rkernel, unregister_rkernel

__all__ = [
    "CudaSource",
    "Kernels",
    "Measurements",
    "TirKernel",
    "constant_parameters",
    "find_copies",
    "make_kernels",
    "register_rkernel",
    "unregister_rkernel",
]
