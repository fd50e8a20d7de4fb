"""Calls of the fixed device functions in sync.cuh, as TIR.

Each call carries the whole file; its include guard keeps one copy. So the text travels with the IR through
`tvm.compile`, and nothing is added to the generated source afterwards.
"""

import functools
import pathlib

from tvm.backend.cuda.op import cuda_func_call
from tvm.ir import Expr


@functools.cache
def source() -> str:
    """Return the text of sync.cuh."""
    return (pathlib.Path(__file__).parent / "sync.cuh").read_text(encoding="utf-8") + "\n"


def run_number(finished: Expr, blocks: int) -> Expr:
    """Number of this run, from 1, for the thread that will say that its block, one of so many, has finished."""
    return cuda_func_call("rammer_run_number", finished, blocks, source_code=source(), return_type="int32")


def wait(counter: Expr, arrivals: Expr, run: Expr) -> Expr:
    """One thread sleeps until the counter has reached `arrivals * run`: an acquire, for the whole GPU."""
    return cuda_func_call("rammer_wait", counter, arrivals, run, source_code=source())


def signal(counter: Expr) -> Expr:
    """One thread adds one to the counter: a release, for the whole GPU."""
    return cuda_func_call("rammer_signal", counter, source_code=source())


def finish(finished: Expr) -> Expr:
    """One thread says that its block has done its part of the run."""
    return cuda_func_call("rammer_finish", finished, source_code=source())


def block_barrier() -> Expr:
    """All threads of the block."""
    return cuda_func_call("rammer_block_barrier", source_code=source())


def rtask_barrier(identity: int, threads: int) -> Expr:
    """The first `threads` threads of the block, on hardware barrier `identity` (1 to 15)."""
    return cuda_func_call("rammer_rtask_barrier", identity, threads, source_code=source())


def select(condition: Expr, one: Expr, other: Expr) -> Expr:
    """The first of two pointers where a condition holds, else the second."""
    return cuda_func_call("rammer_select", condition, one, other, source_code=source(), return_type="handle")
