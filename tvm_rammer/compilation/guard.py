"""No exception of TVM's leaves a compilation: it becomes one of ours, with its cause."""

import contextlib
from collections.abc import Iterator

import tvm
from tvm import relax

from ..errors import CodegenError, ModelError, RammerError, last_line
from ..relay_passes.bindings import body_blocks

MAX_NAMED = 5
"""Operators that a message lists where the one at fault is not known."""


@contextlib.contextmanager
def guarded(mod: tvm.IRModule) -> Iterator[None]:
    """Let no exception of TVM's out: it becomes ours, with its cause, and the operator where that can be known.

    Raises
    ------
    CodegenError
        The body has raised what is no `RammerError`.
    ModelError
        It has, and the module breaks a rule of Relax.
    """
    try:
        yield
    except RammerError:
        raise
    except Exception as error:
        broken = _broken_rule(mod)
        if broken:
            raise ModelError(
                f"the Relax module is not well-formed: {broken}; make it anew, as by a BlockBuilder"
            ) from error
        where = _operator_at(error) or f"one of the operators {', '.join(_operators(mod))}"
        raise CodegenError(
            f"the compilation fails at {where}: {type(error).__name__}: {last_line(error)}; "
            "export the model without it, or with another type or size"
        ) from error


def _broken_rule(mod: tvm.IRModule) -> str:
    """The rule that TVM says a module breaks; empty where it says none."""
    try:
        relax.analysis.well_formed(mod)  # False says no rule: modules of open sizes are none, and compile
    except ValueError as error:
        return last_line(error).rstrip(".")
    return ""


def _operators(mod: tvm.IRModule) -> list[str]:
    """The names of the operators of a loaded module, each once."""
    values = (binding.value for block in body_blocks(mod["main"]) for binding in block.bindings)
    calls = (value for value in values if isinstance(value, tvm.ir.Call) and isinstance(value.op, tvm.ir.Op))
    names = (c.args[0].name_hint if c.op.name == "relax.call_tir" else c.op.name.removeprefix("relax.") for c in calls)
    return list(dict.fromkeys(names))[:MAX_NAMED] or ["of the model"]


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
