"""Scheduling policies, one a file, by name.

A policy takes a `Problem` and returns programs in launch order, as builders, that together hold each
operator once. `schedule` checks what the policy returns.
"""

from collections.abc import Callable

from ..plan.builder import ProgramBuilder
from ..problem import Problem
from .auto import auto
from .global_barrier import global_barrier
from .ios.ios import ios
from .list_scheduling import list_scheduling
from .search import search
from .sequential import sequential
from .wavefront import wavefront

Policy = Callable[[Problem], list[ProgramBuilder]]

POLICIES: dict[str, Policy] = {
    "auto": auto,
    "wavefront": wavefront,
    "sequential": sequential,
    "global": global_barrier,
    "ios": ios,
    "list": list_scheduling,
    "search": search,
}
"""Every policy that `schedule` knows."""
