"""Recurrent layers: LSTM, GRU and RNN nodes become the operators that ONNX defines them by, which TVM's frontend lacks.

Either as a loop (`looped`), whose time of compiling does not depend on its steps, or step by step (`unrolled`).
"""

import onnx

from .....errors import LongLoopError
from ...check.names import name_of
from ...emit import Constants, Emitter, Types, replace_nodes
from ...read import default_opset
from .layer import Layer, Sizes, sizes_of
from .looped import Looped
from .loops import FEWEST_ITERATIONS
from .unrolled import Steps, Unrolled, pass_on

MOST_STEPS = 4096
"""In all layers together, where they are unrolled: so many take minutes to compile."""


def expand_recurrent(model: onnx.ModelProto, *, loops: bool) -> bool:
    """Replace the LSTM, GRU and RNN nodes whose sizes are known, in place.

    Parameters
    ----------
    model : onnx.ModelProto
        Folded, of opset 10 or later.
    loops : bool
        Whether layers become loops, but for short ones; otherwise all are unrolled.

    Returns
    -------
    bool
        Whether there were any.

    Raises
    ------
    LongLoopError
        All layers that are unrolled have more than `MOST_STEPS` steps together.
    ModelError
        One has activation functions that ONNX does not know.
    """
    return replace_nodes(model, _Layers(default_opset(model), loops).replacement)


class _Layers:
    """All recurrent layers of a model: how many steps they have, and which stand on which."""

    def __init__(self, opset: int, loops: bool) -> None:
        self._opset, self._loops, self._steps = opset, loops, 0
        self._below: dict[str, Steps] = {}

    def replacement(self, node: onnx.NodeProto, constants: Constants, types: Types) -> Emitter | None:
        """What takes a node's place, as `replace_nodes` wants it."""
        for name in node.output:  # another branch of an If may have used the name
            self._below.pop(name, None)
        sizes = sizes_of(node, types)
        if sizes is None:
            pass_on(node, types, self._below)
            return None
        if self._loops and sizes.steps >= FEWEST_ITERATIONS:
            layer: Layer = Looped(node, sizes, constants, self._opset)
        else:
            self._count(node, sizes)
            layer = Unrolled(node, sizes, constants, self._opset, self._below)
        layer.expand()
        return layer.emit

    def _count(self, node: onnx.NodeProto, sizes: Sizes) -> None:
        self._steps += sizes.steps * sizes.directions
        if self._steps > MOST_STEPS:
            raise LongLoopError(
                f"{node.op_type} {name_of(node)!r} has {sizes.steps} steps, all recurrent layers together more than "
                f"{MOST_STEPS}, which is the most that is unrolled; give a shorter sequence"
            )
