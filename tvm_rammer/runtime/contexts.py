"""Contexts: what one call of a module changes, so that many threads may call one module.

Plans, code and constants are shared. TVM's virtual machine has registers of its own and is for one thread at a time,
and small inputs are staged in arrays that are used again; so each context has both, and a call holds one context.
"""

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import tvm_ffi

from ..errors import ToolError
from .explore import Plan
from .tensors import TensorSpec, aligned_tensor, check_input, plain
from .tvm_runtime import Machine

Result = TypeVar("Result")

LARGE = 1 << 16
"""Bytes of an input from which on to copy it takes longer than to make a tensor of it."""


class Context:
    """A virtual machine for each plan, and arrays for the inputs; for one call at a time.

    Parameters
    ----------
    inputs : sequence of TensorSpec
    """

    def __init__(self, inputs: Sequence[TensorSpec]) -> None:
        self._inputs = inputs
        self._machines: dict[str, Machine] = {}
        self._staged: list[tuple[np.ndarray[Any, Any], Any]] | None = None

    def machine(self, plan: Plan) -> Machine:
        """The functions of a plan, in a virtual machine that is made at the first call."""
        machine = self._machines.get(plan.label)
        if machine is None:
            machine = self._machines[plan.label] = Machine(plan.module, plan.device.kind, grows=plan.grows)
        return machine

    def stage(self, arrays: Sequence[np.ndarray[Any, Any]], *, in_place: bool) -> list[Any]:
        """Copy arrays to tensors that are made once; where it may be, large ones are read where they are.

        Parameters
        ----------
        arrays : sequence of numpy.ndarray
        in_place : bool
            Whether the model's code takes arrays that are aligned as their elements only.

        Raises
        ------
        ModelError
            An array has another shape or type than its input.
        """
        tensors = []
        for array, spec, (place, tensor) in zip(arrays, self._inputs, self.places(), strict=True):
            if array.shape != place.shape or array.dtype != place.dtype:
                check_input(array, spec)
            if in_place and place.nbytes >= LARGE and array.flags.carray:
                tensors.append(tvm_ffi.from_dlpack(plain(array)))
            else:
                np.copyto(place, array)
                tensors.append(tensor)
        return tensors

    def places(self) -> list[tuple[np.ndarray[Any, Any], Any]]:
        """For each input an array of its own, and the tensor that shares its memory."""
        if self._staged is None:
            self._staged = [aligned_tensor(spec) for spec in self._inputs]
        return self._staged


class ContextPool:
    """At most so many contexts, made when they are needed; who finds none waits for one.

    Parameters
    ----------
    inputs : sequence of TensorSpec
    limit : int
        At least 1.

    Notes
    -----
    A forked child has only the thread that forked: the workers of TVM's thread pool are gone, and a launch would wait
    for them for ever. TVM keeps a pool for each calling thread, so a child calls from a thread of its own. If
    other threads were in the middle of calls at the fork, locks of theirs may be held for ever: calls are refused.
    """

    def __init__(self, inputs: Sequence[TensorSpec], limit: int) -> None:
        self._inputs, self._limit = tuple(inputs), limit
        self._start()
        _POOLS.add(self)

    def _start(self) -> None:
        self._freed = threading.Condition()
        self._waiting = 0
        self._free: deque[Context] = deque()
        self._made = 0
        self._executor: ThreadPoolExecutor | None = None
        self._refused = ""
        self._ended = False

    def call(self, work: Callable[..., Result], *args: Any) -> Result:
        """Call `work` with a context that no other call uses meanwhile; in a forked child on a thread with workers.

        Parameters
        ----------
        work : callable
            Takes the context, and then `args`.

        Raises
        ------
        ToolError
            This process was forked while another thread was in a call.
        """
        if self._refused:
            raise ToolError(self._refused)
        context = self._take()
        try:
            if self._executor is not None:
                return self._executor.submit(work, context, *args).result()
            return work(context, *args)
        finally:
            self._give(context)

    def _take(self) -> Context:
        """A context: the one given back last, else a new one, else, at the limit, the next that is given back."""
        try:
            return self._free.pop()  # takes no lock, as most calls find one
        except IndexError:
            pass
        with self._freed:
            is_main = threading.current_thread() is threading.main_thread()
            if is_main if self._ended else self._made < self._limit:
                self._made += 1
                return Context(self._inputs)
            self._waiting += 1  # before looking again: who gives one back looks at it afterwards
            try:
                while True:
                    try:
                        return self._free.pop()
                    except IndexError:
                        self._freed.wait()
            finally:
                self._waiting -= 1

    def _give(self, context: Context) -> None:
        if self._ended:
            with self._freed:
                self._made -= 1
            return
        self._free.append(context)
        if self._waiting:
            with self._freed:
                self._freed.notify()

    def _end(self, deadline: float) -> None:
        """Wait until no call runs, and let none begin but of the main thread; until some time of the clock at most."""
        with self._freed:
            self._ended = True
            while self._made and time.monotonic() < deadline:
                try:
                    self._free.pop()
                    self._made -= 1
                except IndexError:
                    self._freed.wait(_LOOK_AGAIN_S)

    def _forked(self) -> None:
        """Begin anew in a forked child."""
        running = self._made - len(self._free)
        self._start()
        self._executor = ThreadPoolExecutor(max_workers=self._limit)
        if running:
            self._refused = (
                f"this process was forked while {running} calls of the module ran in other threads; fork before the "
                "first call, start processes by 'spawn', or compile the model in the child"
            )


_POOLS: "weakref.WeakSet[ContextPool]" = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_POOLS):
        pool._forked()


os.register_at_fork(after_in_child=_after_fork)

_GRACE_S, _LOOK_AGAIN_S = 1.0, 0.001
"""How long the end of the process waits for calls of threads that nobody joins, and how often it looks."""


def _at_exit() -> None:
    """Python ends such a thread when it comes back from native code, which within TVM's code aborts the process."""
    deadline = time.monotonic() + _GRACE_S
    for pool in list(_POOLS):
        pool._end(deadline)


atexit.register(_at_exit)
