"""An If as a module: both branches imported, and a function that chooses."""

from collections.abc import Sequence

import onnx
import tvm

from ....debug import say
from ....errors import LongLoopError, ModelError, UnsupportedOperatorError
from .functions import choose, refuse
from .part import BOOL, Part, Types, free_names
from .ranks import Result, either, make_alike, results_of

_BRANCHES = ("then_branch", "else_branch")


def branches(part: Part) -> tvm.IRModule:
    """Import both branches of an If.

    Often a branch is of no use for the shapes at hand: it is for another sample rate, or another rank. So where one of
    them cannot be imported, calls that choose the other are as good as ever, and those that choose it are refused.

    Raises
    ------
    UnsupportedOperatorError
        They return other types or ranks, or what they read is of an unknown rank.
    ModelError
        Neither can be imported.
    LongLoopError
        One of them has a loop that is too long to be unrolled.
    """
    both = [part.graph(name) for name in _BRANCHES]
    read = part.variables(name for graph in both for name in free_names(graph))
    then, other = _imported(part, both, read)
    taken, left = results_of(then), results_of(other)
    if make_alike(both[1], 0, left, taken, [(part.reader(name),) for name in part.outputs]):
        other = part.load(part.model_of(both[1], read))
        left = results_of(other)
    found = [either(a, b) for a, b in zip(taken, left, strict=False)]
    if len(taken) != len(left) or None in found:
        raise UnsupportedOperatorError(
            f"the branches of {part.text} return {_told(taken)} and {_told(left)}: what depends on data cannot be "
            f"of either; make them alike, or make its condition a constant (tvm_rammer.fix_inputs)"
        )
    part.open_sizes |= {
        name: result.sizes
        for name, result in zip(part.outputs, found, strict=True)
        if result is not None and result.sizes is not None and result.shape is None
    }
    part.inputs = [part.scalar(part.node.input[0], BOOL), *read]
    return choose(then, other)


def _imported(part: Part, graphs: Sequence[onnx.GraphProto], read: Types) -> list[tvm.IRModule]:
    """Both branches; a refusal in the place of one that cannot be imported."""
    made: dict[str, tvm.IRModule] = {}
    errors: dict[str, ModelError] = {}
    for name, graph in zip(_BRANCHES, graphs, strict=True):
        try:
            made[name] = part.load(part.model_of(graph, read))
        except LongLoopError:
            raise
        except ModelError as error:
            errors[name] = error
    if not made:
        raise errors[_BRANCHES[0]]
    for name, why in errors.items():
        message = f"the {name} of {part.text} cannot be compiled for inputs of these shapes: {why}"
        say(1, f"calls that choose it will be refused: {message}")
        made[name] = refuse(next(iter(made.values())), message)
    return [made[name] for name in _BRANCHES]


def _told(results: Sequence[Result]) -> str:
    return ", ".join(map(str, results))
