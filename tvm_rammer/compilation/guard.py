"""No exception of TVM's leaves a compilation: it becomes one of ours, with its cause."""

import contextlib
from collections.abc import Iterator

import tvm

from ..errors import CodegenError, RammerError, last_line


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Let no exception of TVM's out: it becomes ours, with its cause, and the operator where that can be known."""
    try:
        yield
    except RammerError:
        raise
    except Exception as error:
        where = _operator_at(error)
        raise CodegenError(
            f"the compilation fails{f' at {where}' if where else ''}: {type(error).__name__}: {last_line(error)}; "
            "export the model without this operator, or with another type or size"
        ) from error


def _operator_at(error: BaseException) -> str:
    """The operator or function that the innermost frames of an error worked on; empty where none is known."""
    found, trace = "", error.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            operator = getattr(value.op, "name", "") if isinstance(value, tvm.ir.Call) else ""
            if operator.startswith("relax."):
                found = f"the operator {operator.removeprefix('relax.')}"
            elif isinstance(value, tvm.tirx.PrimFunc) and value.attrs and "global_symbol" in value.attrs:
                found = f"the function {value.attrs['global_symbol']}"
        trace = trace.tb_next
    return found
