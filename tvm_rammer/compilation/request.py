"""What is to be compiled, and how: the arguments of `compile` and `compile_together`, checked."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from ..arguments import path_of, whole
from ..device import DeviceSpec
from ..errors import ModelError, ScheduleError, TuningLogError
from ..ir import Length

if TYPE_CHECKING:
    from ..wavefront.options import PolicyOptions

Shapes = Mapping[str, Any] | None
"""By the name of an input its shape, or by the name of a symbolic dimension its size."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be compiled.

    Parameters
    ----------
    models : sequence
        As `compile` takes them.
    shapes : sequence of (mapping or None)
        For each model.
    device : DeviceSpec
    joined : bool
        Whether the models become one module by `compile_together`; otherwise there is one.
    shares : tuple of float or None
    policy, sync : str
    options : PolicyOptions or None
    tuning_logs : path or None
    explore : int
    loops : bool
        Whether recurrent layers and loops stay loops where they can; otherwise all are unrolled.
    roll : bool
        Whether what a model has step by step may become loops.
    data_loops : bool
        Whether loops that data end may be loops of an rProgram.
    symbolic : bool
        Whether dimensions that `shapes` leaves open stay symbolic: stock TVM then compiles what depends on them.
    length : Length or None
        What of the model is learnt from each call; `shapes` has the shape of each input then, of any length.
    digests : tuple of bytes or None
        What names each model in the cache, where somebody has found it out already.

    Raises
    ------
    ModelError
        An argument has no sense.
    """

    models: Sequence[Any]
    shapes: Sequence[Shapes]
    device: DeviceSpec
    joined: bool = False
    shares: tuple[float, ...] | None = None
    policy: str = "auto"
    sync: str = "auto"
    options: "PolicyOptions | None" = None
    tuning_logs: str | os.PathLike[str] | None = None
    explore: int = 0
    loops: bool = True
    roll: bool = True
    data_loops: bool = True
    symbolic: bool = False
    length: Length | None = None
    digests: tuple[bytes, ...] | None = None

    @property
    def keeps_loops(self) -> bool:
        """Whether loops may stay loops: of a single model of static shapes, with waits that the scheduler chooses."""
        return self.loops and not (self.joined or self.symbolic) and self.sync == "auto"

    @property
    def joins_loops(self) -> bool:
        """Whether stacked loops become one: on a GPU, where each has its own vEUs then; on a CPU that does not pay."""
        return self.keeps_loops and self.device.kind != "cpu"

    @property
    def rolls_up(self) -> bool:
        """Whether recurrence that a model has step by step becomes loops: on a CPU, where several loops may stay."""
        return self.keeps_loops and self.roll and self.device.kind == "cpu"

    @property
    def keeps_data_loops(self) -> bool:
        """Whether loops that data end may be loops of an rProgram."""
        return self.keeps_loops and self.data_loops

    def __post_init__(self) -> None:
        whole("explore", self.explore, 0)
        if not isinstance(self.policy, str):
            raise ScheduleError(f"policy is {self.policy!r}; give a name, such as 'auto'")
        if not isinstance(self.loops, bool):
            raise ModelError(f"loops is {self.loops!r}; give True or False")
        if self.tuning_logs is not None:
            path_of(self.tuning_logs, TuningLogError)
        for share in self.shares or ():
            if not isinstance(share, Real):
                raise ModelError(f"shares are {self.shares!r}; give a positive number for each model")
        if self.options is not None:
            from ..wavefront.options import PolicyOptions

            if not isinstance(self.options, PolicyOptions):
                raise ModelError(f"options is {self.options!r}; give a tvm_rammer.PolicyOptions")

    def check_policy(self) -> None:
        """Find out now what planning would find: whether there is such a policy.

        Raises
        ------
        ScheduleError
            There is none of this name, or no such way to synchronise.
        """
        if self.policy != "auto":  # the default is known without loading the scheduler, which takes a tenth of a second
            from ..wavefront.policies import POLICIES

            if self.policy not in POLICIES:
                raise ScheduleError(f"unknown policy {self.policy!r}; choose one of {', '.join(POLICIES)}")
        if self.sync not in ("auto", "global"):
            raise ScheduleError(f"unknown sync {self.sync!r}; give 'auto' or 'global'")
