"""TVM's thread pool, for what was left to stock TVM: each thread that calls a model has one of its own.

rPrograms have workers of their own (`persistent_codegen.cpu.workers`).
"""

import threading

import tvm

from ..device.cores import chosen_workers, usable_cores

_STATE = threading.local()


def use_workers() -> None:
    """Let the pool of this thread have as many workers as the user chose, else one for each core that it may use.

    By itself TVM takes half of the cores, for it counts on hyper-threads, never more than there are, and looks neither
    at quotas nor at affinity. A pool that is there already does not grow.
    """
    if getattr(_STATE, "configured", False):
        return
    _STATE.configured = True
    set_workers(chosen_workers() or usable_cores())


def set_workers(count: int) -> None:
    """Let the pool of this thread have so many workers."""
    # TVM takes the length of this list as the largest size of a pool; in mode 1 it chooses the cores itself. Without a
    # list, a pool that once had one launches a single worker as slowly as many.
    cores = [str(core) for core in range(count)]
    tvm.get_global_func("runtime.config_threadpool")(1, count, cores)
