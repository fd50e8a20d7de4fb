"""A rule for sliding windows whose tilings are tiles: they are listed, pruned, and built from their choices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from tvm import tirx

from ....device import DeviceSpec
from ....kernel import Pack, ScheduledKernel
from ...tiling import Function, Tiling
from ..space import TileT, find_tile, prune, scheduled_kernel
from .problem import Window


@dataclass(frozen=True, slots=True)
class TiledRule(Generic[TileT]):
    """Such a rule.

    Parameters
    ----------
    name : str
    window : callable
        The window of a function; None where the rule does not apply.
    tiles : callable
        The tiles of a window on a device.
    tiling : callable
        A tile as a tiling with its predicted time.
    code : callable
        The code of a tile, and how it wants constant parameters laid out.
    """

    name: str
    window: Callable[[Function], Window | None]
    tiles: Callable[[Window, DeviceSpec], Iterable[TileT]]
    tiling: Callable[[Window, TileT, DeviceSpec], Tiling]
    code: Callable[[Function, Window, TileT], tuple[tirx.PrimFunc, Mapping[int, Pack]]]

    def tilings(self, function: Function) -> Sequence[Tiling]:
        """All register tiles with all splits into rTasks."""
        window = self.window(function)
        if window is None:
            return ()
        return prune([self.tiling(window, tile, function.device) for tile in self.tiles(window, function.device)])

    def build(self, function: Function, choices: Mapping[str, int]) -> ScheduledKernel | None:
        """Generate the loops of one of them."""
        window = self.window(function)
        tile = None if window is None else find_tile(self.tiles(window, function.device), choices)
        if window is None or tile is None:
            return None
        code, packs = self.code(function, window, tile)
        return scheduled_kernel(function, self.tiling(window, tile, function.device), code, packs)
