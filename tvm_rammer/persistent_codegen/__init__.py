"""RProgram -> one function per program, for TVM's own code generators (docs/architecture.md, D1, D2, D9)."""

from collections.abc import Mapping, Sequence

import numpy as np

from ..device import DeviceSpec
from ..ir import RProgram
from ..kernel import ScheduledKernel
from .cpu_program import AssembledProgram, assemble_cpu
from .cpu_rtask import extract_cpu
from .library import RTaskLibrary


def assemble(
    program: RProgram,
    values: Mapping[int, np.ndarray],
    kernels: Sequence[ScheduledKernel],
    device: DeviceSpec,
    library: RTaskLibrary,
) -> AssembledProgram:
    """Generate the function of a verified program.

    Parameters
    ----------
    program : RProgram
    values : mapping of int to numpy.ndarray
        The value of each constant buffer.
    kernels : sequence of ScheduledKernel
        The kernel of each operator.
    device : DeviceSpec
    library : RTaskLibrary
        The rTask functions of the module that the program becomes part of.
    """
    packs = [k.packs for k in kernels]
    functions = [library.function(k) for k in kernels]
    return assemble_cpu(program, values, packs, functions, library.variables)


__all__ = ["AssembledProgram", "RTaskLibrary", "assemble", "extract_cpu"]
