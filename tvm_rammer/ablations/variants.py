"""One model compiled in several ways: the kernels are made once, the plans differ."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tvm

from .. import relay_passes
from ..benchmark.peers import Runner
from ..benchmark.race import tvm_runner
from ..compilation.record import Compilation
from ..compilation.regions import plan_regions
from ..compilation.stages import build, find_kernels
from ..device import DeviceSpec
from ..ir import RKernel, RProgram
from ..runtime.tensors import tensor_specs


class Variants:
    """A model, ready to be planned and compiled in several ways; each plan is made once.

    Parameters
    ----------
    model
        As `tvm_rammer.compile` takes it.
    device : DeviceSpec
    tuning_logs : path, optional

    Attributes
    ----------
    inputs : tuple of TensorSpec
        Of the model.
    record : Compilation
        Of the model, not planned: its graphs and all its kernels.
    """

    def __init__(self, model: Any, device: DeviceSpec, tuning_logs: str | os.PathLike[str] | None = None) -> None:
        self.record = Compilation(device)
        loaded = relay_passes.load_model(model)
        self.inputs = tensor_specs(loaded)
        self._module = find_kernels(loaded, self.record, tuning_logs)
        self._plans: dict[tuple[object, ...], Compilation] = {}

    def plan(
        self, policy: str, sync: str, kernels: Mapping[str, tuple[RKernel, ...]] | None = None
    ) -> tuple[RProgram, ...]:
        """Plan the model.

        Parameters
        ----------
        policy, sync : str
            As in `tvm_rammer.compile`.
        kernels : mapping of str to tuple of RKernel, optional
            Some of `record.kernels`, at least one for each function.
        """
        return tuple(self._planned(policy, sync, kernels).programs)

    def runner(self, policy: str, sync: str, kernels: Mapping[str, tuple[RKernel, ...]] | None = None) -> Runner:
        """Compile a plan for this machine's CPU."""
        return tvm_runner(build(self._module, self._planned(policy, sync, kernels)), tvm.cpu())

    def stamped_runner(self, policy: str, sync: str) -> tuple[Runner, Compilation]:
        """Compile a plan for this machine's CPU so that it notes the time; with its record, for `make_profile`."""
        planned = self._planned(policy, sync, None)
        return tvm_runner(build(self._module, planned, stamped=True), tvm.cpu()), planned

    def _planned(self, policy: str, sync: str, kernels: Mapping[str, tuple[RKernel, ...]] | None) -> Compilation:
        key = (policy, sync, None if kernels is None else tuple(sorted(kernels.items(), key=lambda item: item[0])))
        if key not in self._plans:
            planned = replace(self.record.for_policy(policy, kernels or self.record.kernels), sync=sync)
            plan_regions(self._module, planned)
            self._plans[key] = planned
        return self._plans[key]
