"""Where the buffers of a plan lie in an exported project."""

from collections.abc import Collection
from dataclasses import dataclass

from ..gpu_bundle.onsite.plan import Plan
from ..ir import align

OWN = 0
"""The memory of an instance; input i of the model is i + 1, and its outputs come after its inputs."""


@dataclass(frozen=True, slots=True)
class Place:
    """So many bytes from the beginning of the instance's memory, of an input, or of an output."""

    where: int
    offset: int


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the buffers of a plan lie.

    Parameters
    ----------
    places : tuple of Place
        For each buffer.
    copies : tuple of int
        The outputs that no kernel writes to their own place: they are copied there after the launches.
    weights_bytes : int
        The weights come first in an instance's memory, in the order of the buffers.
    nbytes : int
        Size of an instance's memory.
    """

    places: tuple[Place, ...]
    copies: tuple[int, ...]
    weights_bytes: int
    nbytes: int


def place_buffers(plan: Plan, tables: Collection[int]) -> Storage:
    """Give every buffer of a plan its place.

    Parameters
    ----------
    plan : Plan
    tables : collection of int
        Constants that are no weights.
    """
    inputs = [i for i, b in enumerate(plan.buffers) if b.kind == "input"]
    places = {buffer: Place(1 + i, 0) for i, buffer in enumerate(inputs)}
    viewed = [view.buffer for view in plan.outputs]
    copies = []
    for number, view in enumerate(plan.outputs):
        buffer = plan.buffers[view.buffer]
        if buffer.kind == "memory" and viewed.count(view.buffer) == 1 and view.nbytes == buffer.nbytes:
            places[view.buffer] = Place(1 + len(inputs) + number, 0)
        else:
            copies.append(number)
    own = [i for i in range(len(plan.buffers)) if i not in places]
    weights = [i for i in own if plan.buffers[i].kind == "constant" and i not in tables]
    weights_bytes = sum(align(plan.buffers[i].nbytes) for i in weights)
    known, end = set(weights), 0
    for i in (*weights, *(i for i in own if i not in known)):
        places[i] = Place(OWN, end)
        end += align(plan.buffers[i].nbytes)
    return Storage(tuple(places[i] for i in range(len(plan.buffers))), tuple(copies), weights_bytes, max(1, end))
