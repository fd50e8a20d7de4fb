"""The default: the better of two quick policies, by their predicted times."""

from ..plan.builder import ProgramBuilder
from ..predict.predicted import predicted_us
from ..problem import Problem
from .sequential import sequential
from .wavefront import wavefront


def auto(problem: Problem) -> list[ProgramBuilder]:
    """Plan wave after wave, and in the graph's order, and take the better plan.

    Waves put independent operators side by side, which is what a wide vDevice needs. On a few vEUs the graph's own
    order may be better: step after step of a recurrent layer reads weights that are still in the cache.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    list of ProgramBuilder
        In launch order.
    """
    return min((wavefront(problem), sequential(problem)), key=predicted_us)
