"""Many small models to graphs and kernels: functions that are equal get their kernels once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tvm import tirx

from .. import relay_passes, rkernel_gen
from ..compilation.splitting import split_long_sums
from ..compilation.target import tvm_target
from ..device import DeviceSpec
from ..errors import ModelError
from ..ir import RGraph, RKernel
from ..rkernel_gen.tiling import Function


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model as the scheduler sees it.

    Parameters
    ----------
    graph : RGraph
        The one region of the model.
    kernels : dict of str to tuple of RKernel
        For each function of the graph.
    """

    graph: RGraph
    kernels: Mapping[str, tuple[RKernel, ...]]


class Lowering:
    """Lowers one model after another for a device.

    Parameters
    ----------
    device : DeviceSpec
    """

    def __init__(self, device: DeviceSpec) -> None:
        self.device = device
        self._target = tvm_target(device)
        self._kernels: dict[str, tuple[RKernel, ...]] = {}

    def lower(self, model: Any) -> Lowered:
        """Lower a model.

        Raises
        ------
        ModelError
            It is not one region of rOperators that all have kernels.
        """
        mod = split_long_sums(relay_passes.prepare(self._target)(relay_passes.load_model(model)), self.device)
        partition = relay_passes.partition(mod)
        if len(partition.regions) != 1 or partition.stock_calls:
            raise ModelError(
                f"{len(partition.regions)} regions and {len(partition.stock_calls)} stock calls; ablations compare "
                "plans of models that are one region"
            )
        graph = partition.regions[0].graph
        constants = rkernel_gen.constant_parameters([graph])
        functions = {gv.name_hint: f for gv, f in mod.functions.items() if gv.name_hint in constants}
        names = {old: self._name(functions[old], constants[old]) for old in constants}
        graph = replace(graph, operators=tuple(replace(op, function=names[op.function]) for op in graph.operators))
        new = {names[old]: func for old, func in functions.items() if names[old] not in self._kernels}
        if new:
            some = graph.subgraph((o for o, op in enumerate(graph.operators) if op.function in new), "new")
            made = rkernel_gen.make_kernels([some], new, self.device)
            self._kernels |= {name: tuple(k.spec for k in kernels) for name, kernels in made.kernels.items()}
        kernels = {name: self._kernels[name] for name in names.values()}
        if without := [name for name, found in kernels.items() if not found]:
            raise ModelError(f"no rKernel of {', '.join(without)} on {self.device.name}; give another model")
        return Lowered(graph, kernels)

    def _name(self, func: tirx.PrimFunc, constants: frozenset[int]) -> str:
        """One name for all functions of equal structure that have the same parameters constant."""
        return "f" + re.sub(r"\W", "_", Function("", func, self.device, constants).key)
