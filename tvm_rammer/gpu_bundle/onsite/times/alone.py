"""What each kernel takes by itself: by these times its schedule, and what predicted it, can be judged."""

from collections import Counter
from functools import partial
from statistics import median
from typing import Any

from ..cuda import Cuda
from ..launcher import Launcher
from ..session import Session

COPIES = 40
"""Launches of one kernel in a graph, each after the one before it."""

_RUNS, _WARM = 9, 3


def times_alone(session: Session, cuda: Cuda, launcher: Launcher) -> list[dict[str, Any]]:
    """Time the kernels of a variant one by one, on what its last run has left in memory.

    Parameters
    ----------
    session : Session
    cuda : Cuda
    launcher : Launcher

    Returns
    -------
    list of dict
        For each kernel, in the order of the first launches: `kernel`, `uses` in a run, `blocks`, `threads`, and `us`,
        the median microseconds of a launch in a CUDA graph of `COPIES`, the graph's edge included.

    Raises
    ------
    ToolError
        CUDA refuses something.
    """
    uses = Counter(launch.kernel for launch in session.plan.launches)
    found: dict[str, dict[str, Any]] = {}
    for number, launch in enumerate(session.plan.launches):
        if launch.kernel in found:
            continue
        work = session.graph_of_one(number, COPIES)
        times = [cuda.timed_us(launcher.stream, partial(launcher.run, work)) for _ in range(_WARM + _RUNS)]
        found[launch.kernel] = {
            "kernel": launch.kernel,
            "uses": uses[launch.kernel],
            "blocks": launch.grid[0] * launch.grid[1] * launch.grid[2],
            "threads": launch.block[0] * launch.block[1] * launch.block[2],
            "us": median(times[_WARM:]) / COPIES,
        }
    return list(found.values())
