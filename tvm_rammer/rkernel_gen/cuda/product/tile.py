"""A tile of a product on CUDA cores, and how its threads share the work."""

from dataclasses import dataclass

from ..lowered import MAX_SHARED

MOST_UNROLLED = 8
"""Steps of K that are unrolled: more is code that only the first pass through it pays for."""

PADDING = 4
"""Floats between rows of a tile in shared memory: a vector, against bank conflicts."""


@dataclass(frozen=True, slots=True)
class GemmTile:
    """An rTask computes `i` x `j` sums in steps of `k`, a thread `mi` x `mj` of them, over a part of each step.

    The threads are `slices` teams. Each team computes all sums over its own part of each step of K; at the end the
    teams' sums are added up. So there are several warps where there are few results. A team may be a part of a warp:
    then a thread has more results, and reads less of shared memory for each of them.
    """

    i: int
    j: int
    k: int
    mi: int
    mj: int
    slices: int

    @property
    def padding(self) -> int:
        """Elements between rows of a tile in shared memory."""
        return PADDING

    @property
    def fragments(self) -> bool:
        """Whether matrix instructions read the tiles."""
        return False

    @property
    def sums(self) -> int:
        """Registers of a thread for sums."""
        return self.mi * self.mj

    @property
    def team(self) -> int:
        """Threads that together compute all sums over a part of K."""
        return (self.i // self.mi) * (self.j // self.mj)

    @property
    def threads(self) -> int:
        """Threads of an rTask."""
        return self.team * self.slices

    @property
    def rows(self) -> tuple[int, int]:
        """Elements from one row of A's and of B's tile in shared memory to the next."""
        return self.i + PADDING, self.j + PADDING

    @property
    def step_elements(self) -> int:
        """Both operands' tiles of a step."""
        return self.k * sum(self.rows)

    @property
    def buffers(self) -> int:
        """Steps whose tiles are in shared memory: two, if there is room, so that one is stored while one is read."""
        return 2 if 8 * self.step_elements <= MAX_SHARED else 1

    def sums_row(self, fast_i: bool) -> int:
        """Elements from one row of a team's sums to the next, along I or J, when they are added up."""
        return self.i if fast_i else self.j

    @property
    def team_sums(self) -> int:
        """Elements from one team's sums to the next one's, when they are added up: another bank for each."""
        return self.i * self.j + 2 * PADDING

    @property
    def staged(self) -> bool:
        """Whether results go through shared memory, so that neighbours in the output are stored together.

        Those of several teams are added up there. Those of one go through it where they fit, and a thread has several.
        """
        return self.slices > 1 or (max(self.mi, self.mj) > 1 and 4 * self.team_sums <= MAX_SHARED)

    @property
    def shared_elements(self) -> int:
        """The tiles; after the last step the sums lie there."""
        return max(self.buffers * self.step_elements, self.slices * self.team_sums if self.staged else 0)

    @property
    def shared_bytes(self) -> int:
        """In single precision."""
        return 4 * self.shared_elements
