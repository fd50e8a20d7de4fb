"""The tile of a product with few rows: columns, and teams of threads that share its terms."""

from dataclasses import dataclass

from ...cost import WARP

VECTOR = 4
"""Columns of a thread: 16 bytes of weights."""

MAX_LOADS = 64
"""Registers of a thread that hold what is loaded in advance, at most."""


@dataclass(frozen=True, slots=True)
class GemvTile:
    """An rTask computes `columns` sums for each row; each of `teams` teams of threads adds up a part of the terms."""

    columns: int
    teams: int

    @property
    def lanes(self) -> int:
        """Threads of a team."""
        return self.columns // VECTOR

    @property
    def threads(self) -> int:
        """Threads of an rTask."""
        return self.lanes * self.teams

    @property
    def parts(self) -> int:
        """Sums that go through shared memory for each result: one of each warp, or of each team that is several."""
        return max(1, self.threads // max(WARP, self.lanes))

    def batch(self, terms: int, rows: int) -> int:
        """Terms of a thread whose loads are under way together: shared out evenly."""
        loads = -(-terms // self.teams)
        most = MAX_LOADS // (VECTOR + rows)
        return -(-loads // -(-loads // most))
