"""Plans of one program as sequences of steps, each evaluated incrementally from the one before."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir import RKernel
from ..plan.append_operator import append_operator
from ..plan.builder import Mark, ProgramBuilder


@dataclass(frozen=True, slots=True)
class Step:
    """Append an operator.

    Parameters
    ----------
    operator : int
    kernel : RKernel
    barrier : bool
        Whether a barrier comes before it.
    """

    operator: int
    kernel: RKernel
    barrier: bool = False


class Replay:
    """Plans sequences of steps; a prefix that a sequence shares with the one before is not planned again.

    Parameters
    ----------
    builder : ProgramBuilder
        A program that all sequences continue; it becomes that of the last one.
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        self.builder = builder
        self._steps: list[Step] = []
        self._marks: list[Mark] = []

    def time_us(self, steps: Sequence[Step]) -> float:
        """Plan a sequence and return its predicted time, the launch included."""
        common = 0
        for mine, wanted in zip(self._steps, steps, strict=False):
            if mine != wanted:
                break
            common += 1
        if common < len(self._marks):
            self.builder.rollback(self._marks[common])
        del self._steps[common:], self._marks[common:]
        for step in steps[common:]:
            self._marks.append(self.builder.mark())
            self._steps.append(step)
            if step.barrier:
                self.builder.barrier()
            append_operator(step.operator, step.kernel, self.builder)
        return self.builder.time_us
