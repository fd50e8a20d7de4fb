"""Runs of a module for a GPU one after another, whatever streams they are asked for on."""

from typing import TYPE_CHECKING

import tvm_ffi

if TYPE_CHECKING:
    import tvm


class StreamOrder:
    """Lets a run on another stream begin when the run before it has ended.

    The blocks of a persistent kernel count in memory that the module holds, and all must be resident at once: two runs
    side by side would count together, or wait for each other. Runs on one stream follow one another by themselves.
    Who calls holds the module's only context (`contexts`), so no two threads are in here at the same time.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def enter(self, device: "tvm.runtime.Device") -> None:
        """Before a run on the current stream of the device, which each thread has for itself."""
        stream = tvm_ffi.get_raw_stream(device)
        if self._last is not None and self._last != stream:
            device.sync(self._last)
        self._last = stream
