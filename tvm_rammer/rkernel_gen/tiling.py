"""The constructed space: which tilings a function has, what each is predicted to cost, and the code of one of them.

A rule knows one form of function (a convolution, rows with sums, elements). It answers two questions: which tilings
it has (Roller, OSDI 2022, section 3: aligned tiles, ranked by a micro performance model), and what the code of a
tiling is. Nothing is built to answer the first, so a space of hundreds of tilings costs milliseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import tvm_ffi
from tvm import tirx

from ..device import DeviceSpec
from ..kernel import ScheduledKernel


@dataclass(frozen=True)
class Function:
    """A fused function to make rKernels of, and where they will run.

    Parameters
    ----------
    name : str
        In its module; the kernels' names start with it.
    func : tirx.PrimFunc
        Not scheduled, of static shapes.
    device : DeviceSpec
    constants : frozenset of int
        The parameters that are constants wherever the function is called: these may be packed.
    """

    name: str
    func: tirx.PrimFunc
    device: DeviceSpec
    constants: frozenset[int] = frozenset()

    @cached_property
    def key(self) -> str:
        """Names the function in logs: equal for functions of equal structure, whatever their names."""
        bare = self.func.without_attr("global_symbol")
        constants = ".".join(str(i) for i in sorted(self.constants))
        return f"{tvm_ffi.structural_hash(bare, map_free_vars=True) & (2**64 - 1):016x}-{constants}"


@dataclass(frozen=True, slots=True)
class Tiling:
    """A point of the constructed space.

    Parameters
    ----------
    rule : str
        `Rule.name` of the rule that builds it.
    choices : tuple of (str, int)
        All that the rule needs to build it again, by name.
    num_rtasks : int
    rtask_us : float
        Time of one rTask alone on a vEU, as the rule predicts it, in microseconds.
    late_us : float
        How much longer it takes where all that it reads is in the last-level cache, as in most models: other operators
        pushed the weights out of a unit's own, and other units wrote the data. It ranks tilings, and is no part of the
        predicted time.
    """

    rule: str
    choices: tuple[tuple[str, int], ...]
    num_rtasks: int = field(compare=False)
    rtask_us: float = field(compare=False)
    late_us: float = field(default=0.0, compare=False)

    def __getitem__(self, name: str) -> int:
        return dict(self.choices)[name]

    def operator_us(self, units: int) -> float:
        """Predicted time of the operator alone on a device of so many units, in microseconds."""
        return self.rtask_us * -(-self.num_rtasks // units)

    def rank_us(self, units: int) -> float:
        """The same among other operators, by which tilings are ranked."""
        return (self.rtask_us + self.late_us) * -(-self.num_rtasks // units)

    @property
    def label(self) -> str:
        """A short name, unique among the tilings of a function, fit for an identifier."""
        return "_".join((self.rule, *(f"{name}{value}" for name, value in self.choices)))


class Rule(Protocol):
    """Makes the rKernels of one form of function on one kind of device."""

    name: str

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All tilings that the rule would try, in any order; empty where the function is not of its form."""

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """The code of a tiling, also one that only a log names.

        Returns
        -------
        ScheduledKernel or None
            `spec.name` is `{function.name}_{Tiling.label}`; None where the choices do not fit the function
            or the result breaks a limit of the device.
        """
