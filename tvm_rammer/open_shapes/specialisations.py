"""The modules of the shapes that came last, and those in the making. Safe for many threads."""

import os
import threading
import weakref
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from .. import debug
from ..errors import RammerError, ToolError, first_line
from ..ir import Length
from ..runtime.module import RammerModule
from .dimensions import Shapes

Key = tuple[tuple[Any, ...], ...]
"""The shapes of all inputs, in their order; of a module of any length with 1 for it, and -1, its bound and its axes."""


class Maker(Protocol):
    """Makes the modules of a model."""

    def cached(self, shapes: Shapes, length: Length | None) -> RammerModule | None:
        """What the cache of compiled models has for these shapes."""

    def compile(self, shapes: Shapes, length: Length | None) -> RammerModule:
        """A module of these shapes, or of any length, from the cache or compiled; raises what compiling raises."""

    def stock(self) -> RammerModule:
        """A module of open shapes by stock TVM; raises a RammerError where TVM can make none."""


class Specialisations:
    """Modules by the shapes of their inputs; those that were not used the longest go first.

    Parameters
    ----------
    maker : Maker
    most : int
        How many to keep.

    Notes
    -----
    One is compiled at a time, so that it finds the kernels of the one before; whoever wants one that is in the making
    waits for it. A forked child has none of the threads that compile: it forgets what was in the making.
    """

    def __init__(self, maker: Maker, most: int) -> None:
        self._maker, self._most = maker, most
        self._ready: OrderedDict[Key, RammerModule] = OrderedDict()
        self._failed: set[Key] = set()
        self._start()
        _ALL.add(self)

    def _start(self) -> None:
        self._lock, self._compiling = threading.Lock(), threading.Lock()
        self._pending: dict[Key, Future[RammerModule]] = {}
        self._executor: ThreadPoolExecutor | None = None

    @property
    def modules(self) -> tuple[RammerModule, ...]:
        """Those that are ready, the one that was used last at the end."""
        with self._lock:
            return tuple(self._ready.values())

    def find(self, key: Key) -> RammerModule | None:
        """The module of these shapes, if it is ready."""
        with self._lock:
            module = self._ready.get(key)
            if module is not None:
                self._ready.move_to_end(key)
            return module

    def load(self, key: Key, shapes: Shapes, length: Length | None = None) -> RammerModule | None:
        """The module of these shapes, if it is ready or in the cache of compiled models."""
        module = self.find(key)
        if module is None and not self._is_pending(key):
            module = self._maker.cached(shapes, length)
            if module is not None:
                self._keep(key, module)
        return module

    def make(self, key: Key, shapes: Shapes, length: Length | None = None) -> RammerModule:
        """The module of these shapes, or of any length, when it is ready.

        Raises
        ------
        RammerError
            It cannot be compiled.
        """
        future, ours = self._begin(key)
        if ours:
            self._work(key, shapes, length, future)
        return future.result()

    def make_meanwhile(self, key: Key, shapes: Shapes) -> None:
        """Have the module of these shapes compiled by another thread; what failed there is not tried again."""
        if key in self._failed:
            return
        future, ours = self._begin(key)
        if ours:
            self._background().submit(self._work_quietly, key, shapes, future)

    def wait(self) -> None:
        """Wait until nothing is in the making."""
        while pending := list(self._pending.values()):
            pending[0].exception()

    def _is_pending(self, key: Key) -> bool:
        with self._lock:
            return key in self._pending

    def _begin(self, key: Key) -> tuple["Future[RammerModule]", bool]:
        """What will be the module, and whether it is up to the caller to make it."""
        with self._lock:
            ours = key not in self._pending
            future = self._pending.setdefault(key, Future())
            if ours and key in self._ready:
                del self._pending[key]
                future.set_result(self._ready[key])
            return future, ours and not future.done()

    def _work(self, key: Key, shapes: Shapes, length: Length | None, future: "Future[RammerModule]") -> None:
        try:
            with self._compiling:
                module = self._maker.compile(shapes, length)
        except BaseException as error:
            with self._lock:
                self._pending.pop(key, None)
            future.set_exception(error)
            return
        self._keep(key, module)
        future.set_result(module)

    def _work_quietly(self, key: Key, shapes: Shapes, future: "Future[RammerModule]") -> None:
        if not threading.main_thread().is_alive():  # the process ends: nobody will call it
            self._pending.pop(key, None)
            future.set_exception(ToolError("the process ends"))
            return
        self._work(key, shapes, None, future)
        if error := future.exception():
            self._failed.add(key)
            debug.say(1, f"stays stock TVM's, {dict(shapes)} cannot be compiled: {first_line(error)}")

    def _keep(self, key: Key, module: RammerModule) -> None:
        with self._lock:
            self._ready[key] = module
            self._ready.move_to_end(key)
            self._failed.discard(key)
            self._pending.pop(key, None)
            while len(self._ready) > self._most:
                self._ready.popitem(last=False)

    def _background(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "rammer-shapes")
            return self._executor


def stock_of(maker: Maker) -> RammerModule | None:
    """A stock build; None where TVM cannot make one."""
    try:
        return maker.stock()
    except RammerError as error:
        debug.say(1, f"stock TVM cannot compile the model with open shapes: {first_line(error)}")
        return None


_ALL: "weakref.WeakSet[Specialisations]" = weakref.WeakSet()


def _after_fork() -> None:
    for specialisations in list(_ALL):
        specialisations._start()


os.register_at_fork(after_in_child=_after_fork)
