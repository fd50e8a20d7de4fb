"""Several rKernels for each rOperator: tilings of its function, made by TVM schedules.

In go RGraphs and their fused functions, out come for each function the kernels that the scheduler may choose from.
Read in this order:

    tiling        what a rule is: a space of tilings with predicted times, and the code of each
    construct     from that space to the few tilings that are built
    cpu, cuda     the rules of each kind of device
    registered    rKernels that users wrote by hand: one more rule
    measured      what is asked of a tuning log
    analysis      reading fused functions
    footprint     which part of each buffer an rTask touches
    select        the Pareto set that the scheduler sees
    make_kernels  all of it, for a whole module
"""

from .make_kernels import Kernels, constant_parameters, make_kernels
from .measured import Measurements
from .registered import CudaSource, TirKernel, register_rkernel, unregister_rkernel

__all__ = [
    "CudaSource",
    "Kernels",
    "Measurements",
    "TirKernel",
    "constant_parameters",
    "make_kernels",
    "register_rkernel",
    "unregister_rkernel",
]
