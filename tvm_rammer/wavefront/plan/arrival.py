"""When the data that an rTask reads has been written, and by which vEUs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .placement import Placement

NEVER = -math.inf
"""The time of data that need not be waited for."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """When the data that an rTask reads has been written.

    Parameters
    ----------
    last_veu : int or None
        The vEU that writes the last of it; None if several vEUs do, or none.
    last_us : float
        When the last of it is written, in microseconds.
    others_us : float
        When the other vEUs have written the rest.
    middle_veu : int or None
        The vEU that writes the middle of what it reads; None if it reads from all rTasks of its predecessors.
    """

    last_veu: int | None
    last_us: float
    others_us: float
    middle_veu: int | None

    @property
    def data_veu(self) -> int | None:
        """The vEU to prefer: the one whose own data arrives last, else the one that writes the middle of what is read.

        None for any.
        """
        own_data_is_last = self.last_veu is not None and self.last_us > self.others_us
        return self.last_veu if self.middle_veu is not None and own_data_is_last else self.middle_veu

    def start_us(self, veu: int, ready_us: float, signal_us: float) -> float:
        """When the rTask can start on a vEU that is free at `ready_us`: a vEU needs no signal for its own data."""
        return max(ready_us, (self.others_us if veu == self.last_veu else self.last_us) + signal_us)


def arrival(reads: Iterable[tuple[Placement, int | None]]) -> Arrival:
    """Combine what an rTask reads of several operators.

    Parameters
    ----------
    reads : iterable of (Placement, int or None)
        For each operator the rTasks that it depends on, as bits; None for all.
    """
    written_us: dict[int | None, float] = {}
    middle_veu, latest = None, -1
    for placement, bits in reads:
        part = None if bits is None else placement.veus_of(bits)
        if part is None:
            veu = placement.only_veu
            written_us[veu] = max(written_us.get(veu, NEVER), placement.finish_us)
        else:
            for veu in part:
                written_us[veu] = max(written_us.get(veu, NEVER), placement.ends_us[veu])
        if bits and placement.number > latest:
            lowest = (bits & -bits).bit_length() - 1
            middle_veu, latest = placement.veu_of((lowest + bits.bit_length() - 1) // 2), placement.number
    if not written_us:
        return Arrival(None, NEVER, NEVER, middle_veu)
    last_veu = max(written_us, key=lambda veu: written_us[veu])
    last_us = written_us.pop(last_veu)
    others_us = max(written_us.values(), default=NEVER) if last_veu is not None else last_us
    return Arrival(last_veu, last_us, others_us, middle_veu)
