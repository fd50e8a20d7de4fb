"""The record of a compilation: what the driver fills in, and reports read."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..device import DeviceSpec
from ..ir import Copies, RGraph, RKernel, RProgram
from ..wavefront import CostModel, PolicyOptions


@dataclass(slots=True)
class Compilation:
    """What became of a model.

    Parameters
    ----------
    device : DeviceSpec
    policy, sync : str
    options : PolicyOptions or None
    num_params : tuple of int
        How many inputs each of several joined models has; empty for a single model.
    shares : tuple of float or None
        The share of the vEUs that each of them gets; None where all use all.
    views : bool
        Whether copies are left out that placement can avoid.
    operators : int
        Calls of the model before fusion.
    graphs : list of RGraph
        One for each region, with all its copies.
    copies : Copies
        What the functions move that only copy; empty where all copies stay.
    kernels : dict of str to tuple of RKernel
        All that were considered, by function.
    dropped : Counter
        Kernels that were made and not kept, counted by reason.
    programs : list of RProgram
        In launch order.
    programs_per_region : list of int
        How many programs each region became.
    stock_calls : list of (str, str)
        Calls left to stock TVM, with the reason.
    grows : bool
        Whether a loop has states whose sizes change from round to round.
    resources : dict of str to dict
        On a GPU, for each rProgram: threads, registers, shared memory, spills and resident blocks, or the
        reason why they are unknown.
    metadata : mapping or None
        What the ONNX file of a single model says of itself, as `onnxruntime.ModelMetadata` names it.
    """

    device: DeviceSpec
    policy: str = "auto"
    sync: str = "auto"
    options: PolicyOptions | None = None
    num_params: tuple[int, ...] = ()
    shares: tuple[float, ...] | None = None
    views: bool = True
    operators: int = 0
    graphs: list[RGraph] = field(default_factory=list)
    copies: Copies = field(default_factory=dict)
    kernels: dict[str, tuple[RKernel, ...]] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    programs: list[RProgram] = field(default_factory=list)
    programs_per_region: list[int] = field(default_factory=list)
    stock_calls: list[tuple[str, str]] = field(default_factory=list)
    grows: bool = False
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    metadata: Mapping[str, Any] | None = None

    @property
    def veus(self) -> int:
        """VEUs of the plan: one for each unit, or for a GPU several."""
        return max((len(program.lanes) for program in self.programs), default=0)

    @property
    def cost(self) -> CostModel:
        """What the plan was predicted with."""
        return CostModel.of(self.device, self.veus)

    def for_policy(self, policy: str, kernels: Mapping[str, tuple[RKernel, ...]]) -> "Compilation":
        """The record of another plan for the same regions: nothing is planned in it yet."""
        return replace(self, policy=policy, kernels=dict(kernels), programs=[], programs_per_region=[], resources={})
