"""A loop in a Relax module: a function that is one step, and a call that stands for all of them.

The call is `call_dps_packed("rammer.loop.NAME", (initial states, arrays, invariants))`, where NAME is a function of the
module that has the attribute `LOOP`. Where the number of steps is known only at run time, one more argument is the
number of rows that there are, an int32. That function takes the states, the slice of each array that a step reads, and
the invariants, and returns what the step writes. TVM cannot run such a call: `regions` makes rPrograms of all of them.
"""

import json
from collections.abc import Collection, Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Self, TypeVar

import tvm
import tvm_ffi
from tvm import relax
from tvm.ir import Call

from ...errors import DataLoopError, LoopError
from ..bindings import name_of_packed

LOOP = "rammer.loop"
ROLLED_UP = "rammer.rolled_up"
"""An attribute of modules with loops of steps that the model has one by one."""

_CALL = "rammer.loop."

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True)
class LoopBody:
    """What the attribute says of a step.

    Parameters
    ----------
    steps : int
    rings : int
        How many results of the call, the first ones, hold a state in two slots that are written in turn: what step k
        writes is in slot (k + 1) % 2. All others hold what each step wrote, along their first axis.
    carried : tuple of int
        For each state the result of the call that it is read from, as the step before wrote it.
    reads, writes : tuple of bool
        For each array that is read, and for each result that is no ring, whether the steps go from its end to its
        beginning.
    rows : int
        Where the number of steps comes from the last argument of the call, how many rows a step does: as many the
        slices have along their first axis, or 1, and they are without that axis. There are at most `steps` steps then.
        0 where the number of steps is known.
    conditional : bool
        Whether the last result of a step says if there is another one. There are at most `steps` steps then.
    """

    steps: int
    rings: int
    carried: tuple[int, ...]
    reads: tuple[bool, ...]
    writes: tuple[bool, ...]
    rows: int = 0
    conditional: bool = False

    def text(self) -> str:
        """As the value of an attribute."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, func: relax.Function) -> Self | None:
        """What the attribute of a function says; None where it has none."""
        if not func.attrs or LOOP not in func.attrs:
            return None
        found = json.loads(str(func.attrs[LOOP]))
        lists = {key: tuple(found[key]) for key in ("carried", "reads", "writes")}
        return cls(found["steps"], found["rings"], **lists, rows=found["rows"], conditional=found["conditional"])


@dataclass(frozen=True, slots=True)
class StepResults(Generic[Value]):
    """What a step returns, each value once, although a state may be a result of each step, too.

    Parameters
    ----------
    values : tuple
        First the states that are no results of each step.
    rings : int
        How many of these there are.
    carried : tuple of int
        For each state which of the values it is.
    """

    values: tuple[Value, ...]
    rings: int
    carried: tuple[int, ...]

    @classmethod
    def of(cls, returned: Sequence[Value], states: int, given: Collection[Value]) -> Self:
        """Sort them.

        Parameters
        ----------
        returned : sequence
            The next states, then what the step adds to each result.
        states : int
            How many states there are.
        given : collection
            What no step computes.

        Raises
        ------
        LoopError
            One of them is given, or is two results.
        """
        written = returned[states:]
        own = [value for value in dict.fromkeys(returned[:states]) if value not in written]
        values = (*own, *written)
        if len(set(values)) < len(values) or not set(given).isdisjoint(values):
            raise LoopError("a loop that hands on a value which no step computes, or writes one twice")
        return cls(values, len(own), tuple(values.index(value) for value in returned[:states]))


def call_loop(name: str, args: list[relax.Expr], types: list[relax.TensorType]) -> Call:
    """The call of all steps of a function."""
    return relax.op.call_dps_packed(_CALL + name, relax.Tuple(args), types if len(types) > 1 else types[0])


def called_loop(value: relax.Expr) -> str | None:
    """The name of the function whose steps a call stands for; None for any other expression."""
    return name_of_packed(value, _CALL)


def is_rolled_up(mod: tvm.IRModule) -> bool:
    """Whether a module has loops of steps that the model has one by one."""
    return bool(mod.attrs and ROLLED_UP in mod.attrs)


def loop_bodies(mod: tvm.IRModule) -> dict[str, relax.Function]:
    """The functions of a module that are steps of loops."""
    return {
        var.name_hint: func
        for var, func in mod.functions_items()
        if isinstance(func, relax.Function) and LoopBody.of(func) is not None
    }


def steps_of_loops(mod: tvm.IRModule) -> list[int]:
    """How many steps each loop of a module has that could be unrolled: all but those that data end."""
    bodies = map(LoopBody.of, loop_bodies(mod).values())
    return [body.steps for body in bodies if body is not None and not body.conditional]


def loop_error(step: relax.Function, message: str) -> LoopError:
    """The error of a loop that cannot be one of an rProgram."""
    loop = LoopBody.of(step)
    return DataLoopError(message) if loop is not None and loop.conditional else LoopError(message)


def rename_loops(mod: tvm.IRModule, prefix: str) -> tvm.IRModule:
    """Give the loops of a module longer names, so that it can be joined with others."""
    steps = loop_bodies(mod)

    def renamed(function: relax.ExternFunc) -> relax.ExternFunc:
        name = str(function.global_symbol).removeprefix(_CALL)
        return relax.ExternFunc(_CALL + prefix + name) if name in steps else function

    longer = {}
    for var, func in mod.functions_items():
        if var.name_hint in steps:
            longer[prefix + var.name_hint] = func.with_attr("global_symbol", prefix + var.name_hint)
        elif isinstance(func, relax.Function):
            longer[var.name_hint] = tvm_ffi.structural_map(func, [(relax.ExternFunc, renamed)], order="post")
        else:
            longer[var.name_hint] = func
    return tvm.IRModule(longer, attrs=mod.attrs)
