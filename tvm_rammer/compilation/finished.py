"""The finished kernel of a planned program: its code, and what ptxas says of it on a GPU."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from .. import persistent_codegen as codegen
from .. import relay_passes
from ..device import DeviceSpec
from ..errors import MissingToolError
from ..ir import RProgram
from ..kernel import ScheduledKernel


def finished(
    program: RProgram,
    region: relay_passes.Region,
    by_name: Mapping[str, ScheduledKernel],
    device: DeviceSpec,
    library: codegen.RTaskLibrary,
    *,
    stamped: bool = False,
    watchdog_s: float | None = None,
) -> codegen.AssembledProgram:
    """Generate the code of a program.

    Parameters
    ----------
    program : RProgram
    region : relay_passes.Region
        Of which it is a part.
    by_name : mapping of str to ScheduledKernel
        At least the kernels of the program.
    device : DeviceSpec
    library : codegen.RTaskLibrary
    stamped : bool
        Whether it reports when its instructions ended (`persistent_codegen.collect_stamps`).
    watchdog_s : float, optional
        As for `persistent_codegen.assemble`.

    Raises
    ------
    CodegenError
        A kernel of it cannot become an rTask function, or needs more than the device has.
    """
    index = RegionIndex(program, region)
    values = {i: index.value(i) for i, b in enumerate(program.graph.buffers) if b.kind == "constant"}
    kernels = [by_name[k.name] for k in program.kernels]
    return codegen.assemble(program, values, kernels, device, library, stamped=stamped, watchdog_s=watchdog_s)


def resources_of(program: RProgram, built: codegen.AssembledProgram, device: DeviceSpec) -> dict[str, Any]:
    """Compile the kernel of a program with nvcc, where there is one for this GPU, and make sure that all its vEUs fit.

    A text that nvcc rejects, or takes too long for, is an error: nothing is known of whether its vEUs fit.
    """
    found: dict[str, Any] = {"threads": built.threads, "dynamic_shared_bytes": built.shared_bytes}
    try:
        needs = codegen.measure_resources(codegen.cuda_source(built, device), device.arch)
    except MissingToolError as error:
        return found | {"unknown": str(error)}
    lanes = len(program.lanes)
    resident = codegen.check_residency(device, built.threads, needs, lanes, built.shared_bytes)
    return found | asdict(needs) | {"resident_blocks_per_unit": resident}


class RegionIndex:
    """Positions of a program's buffers and operators in the graph of its region."""

    def __init__(self, program: RProgram, region: relay_passes.Region) -> None:
        by_name = {b.name: i for i, b in enumerate(region.graph.buffers)}
        self.buffer = [by_name[b.name] for b in program.graph.buffers]
        self.operator = {op.name: i for i, op in enumerate(region.graph.operators)}
        self._exprs = region.buffer_exprs

    def value(self, buffer: int) -> np.ndarray:
        """The value of a constant buffer of the program."""
        constant: Any = self._exprs[self.buffer[buffer]]
        return np.asarray(constant.value.numpy())
