"""The constructed space: which tilings a function has, the predicted time of each, and the code of one of them.

A rule applies to one kind of function, such as a convolution or a row-wise reduction. It lists the tilings of a
function (Roller, OSDI 2022, section 3: aligned tiles, ranked by a micro performance model), and it builds the code of a
tiling. The list needs no code, so that hundreds of tilings take milliseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache, cached_property
from typing import Any, ClassVar, Protocol

from tvm import tirx

from ..device import DeviceSpec
from ..kernel import ScheduledKernel
from .analysis.structure import structural_key


@dataclass(frozen=True)
class Function:
    """A fused function to make rKernels of, and the device that they are for.

    Parameters
    ----------
    name : str
        The function's name in its module; the names of its kernels start with it.
    func : tirx.PrimFunc
        The unscheduled function, of static shapes.
    device : DeviceSpec
    constants : frozenset of int
        Parameters that are constants in every call of the function: these may be packed.
    repeated : bool
        Whether it is called in every step of a loop: then a GPU's vEUs may keep slices of its constants.
    """

    name: str
    func: tirx.PrimFunc
    device: DeviceSpec
    constants: frozenset[int] = frozenset()
    repeated: bool = False

    @cached_property
    def key(self) -> str:
        """Identifies the function in logs: equal for functions of equal structure, whatever their names."""
        constants = ".".join(str(i) for i in sorted(self.constants))
        return f"{structural_key(self.func):016x}-{constants}"


@dataclass(frozen=True, slots=True)
class Tiling:
    """A point of the constructed space.

    Parameters
    ----------
    rule : str
        `Rule.name` of the rule that builds it.
    choices : tuple of (str, int)
        The named integers that identify the tiling: the rule builds its code from them alone.
    num_rtasks : int
    rtask_us : float
        Predicted time of one rTask alone on a vEU, in microseconds.
    refill_us : float
        Extra time, in microseconds, to refill a unit's own cache from the last-level cache. Within a model most inputs
        are there: other operators evicted the weights, and other units wrote the data. Less than 0 where constants
        are kept from step to step of a loop. It is used to rank tilings, and is no part of `rtask_us`.
    """

    rule: str
    choices: tuple[tuple[str, int], ...]
    num_rtasks: int = field(compare=False)
    rtask_us: float = field(compare=False)
    refill_us: float = field(default=0.0, compare=False)

    def __getitem__(self, name: str) -> int:
        return dict(self.choices)[name]

    def operator_us(self, units: int) -> float:
        """Predicted time of the operator alone on a device with `units` units, in microseconds."""
        return self.rtask_us * -(-self.num_rtasks // units)

    def rank_us(self, units: int) -> float:
        """Predicted time of the operator within a model, in microseconds; tilings are ranked by it."""
        return (self.rtask_us + self.refill_us) * -(-self.num_rtasks // units)

    @property
    def label(self) -> str:
        """A short identifier, unique among the tilings of a function."""
        return "_".join((self.rule, *(f"{name}{value}" for name, value in self.choices)))


class Tile(Protocol):
    """The choices of a tiling as a rule has them: any dataclass of integers."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def choices_of(tile: Tile) -> tuple[tuple[str, int], ...]:
    """The fields of a tile with their names: `Tiling.choices`."""
    return tuple([(name, getattr(tile, name)) for name in _names_of(type(tile))])


@cache
def _names_of(tile: type[Tile]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(tile))


class Rule(Protocol):
    """Makes the rKernels of one kind of function on one kind of device."""

    @property
    def name(self) -> str:
        """`Tiling.rule` of its tilings."""

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All tilings of a function, in any order; empty where the rule does not apply."""

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """The code of a tiling, which may come from a log.

        Returns
        -------
        ScheduledKernel or None
            `spec.name` is `{function.name}_{Tiling.label}`; None where the choices do not fit the function
            or the result breaks a limit of the device.
        """
