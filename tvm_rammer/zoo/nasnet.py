"""NASNet-A (Zoph et al., CVPR 2018): cells of ten small operators, found by search, wired irregularly."""

from dataclasses import dataclass

import numpy as np
import onnx

from .onnx_tools.graph import OnnxGraph


@dataclass(frozen=True, slots=True)
class _Cell:
    """Five pairs of (operator, state that it reads); each pair's sum is a new state. States 0 and 1 are the inputs."""

    pairs: tuple[tuple[tuple[str, int], tuple[str, int]], ...]
    concatenated: tuple[int, ...]


_NORMAL = _Cell(
    (
        (("separable5", 0), ("separable3", 1)),
        (("separable5", 1), ("separable3", 1)),
        (("average", 0), ("none", 1)),
        (("average", 1), ("average", 1)),
        (("separable3", 0), ("none", 0)),
    ),
    (1, 2, 3, 4, 5, 6),
)
_REDUCTION = _Cell(
    (
        (("separable5", 0), ("separable7", 1)),
        (("max", 0), ("separable7", 1)),
        (("average", 0), ("separable5", 1)),
        (("none", 3), ("average", 2)),
        (("separable3", 2), ("max", 0)),
    ),
    (3, 4, 5, 6),
)


@dataclass(frozen=True, slots=True)
class _State:
    """An image in the graph: its value, its channels, and how often it was halved."""

    name: str
    channels: int
    level: int


def nasnet(
    *, cells: int = 18, filters: int = 32, size: int = 32, classes: int = 10, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Build NASNet-A for CIFAR-10 for inference, batch norm folded into the convolutions.

    Parameters
    ----------
    cells : int
        Normal cells, a multiple of 3; a reduction cell stands after each third of them but the last.
    filters : int
        Of the first normal cells; 32 and 18 cells are the NASNet-A (6 @ 768) of Rammer's evaluation, table 2.
    size : int
        Of the input `x`, float32 [batch, 3, size, size]; a multiple of 4.
    classes, batch : int
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Output `y`, float32 [batch, classes], without a softmax.
    """
    builder = _Builder(OnnxGraph(seed))
    graph = builder.graph
    graph.conv("stem", "x", (3, 3 * filters, 3), relu=False)
    before = at = _State("stem", 3 * filters, 0)
    for i in range(cells):
        third = 3 * i // cells
        if third != at.level:
            before, at = at, builder.cell(f"reduction{third}", _REDUCTION, at, before, filters << third, 2)
        before, at = at, builder.cell(f"cell{i}", _NORMAL, at, before, filters << third, 1)
    mean = graph.node("GlobalAveragePool", [builder.relu(at)], "mean")
    graph.dense("y", graph.node("Flatten", [mean], "features"), at.channels, classes)
    return graph.model(f"nasnet_{cells}x{filters}", {"x": (batch, 3, size, size)}, {"y": (batch, classes)})


class _Builder:
    def __init__(self, graph: OnnxGraph) -> None:
        self.graph = graph
        self._rectified: set[str] = set()

    def relu(self, state: _State) -> str:
        """The rectified state; a state that several operators read is rectified once."""
        name = f"{state.name}_relu"
        if name not in self._rectified:
            self._rectified.add(name)
            self.graph.node("Relu", [state.name], name)
        return name

    def cell(self, name: str, cell: _Cell, at: _State, before: _State, filters: int, stride: int) -> _State:
        graph = self.graph
        side = self._match(f"{name}_side", before, at, filters)
        graph.conv(f"{name}_in", self.relu(at), (at.channels, filters, 1), relu=False)
        states = [_State(f"{name}_in", filters, at.level), side]
        level = at.level + (stride == 2)
        for i, pair in enumerate(cell.pairs):
            terms = [
                self._operator(f"{name}_{i}{end}", kind, states[k], stride if k < 2 else 1)
                for end, (kind, k) in zip("lr", pair, strict=True)
            ]
            states.append(_State(graph.node("Add", terms, f"{name}_{i}"), filters, level))
        graph.node("Concat", [states[k].name for k in cell.concatenated], name, axis=1)
        return _State(name, filters * len(cell.concatenated), level)

    def _match(self, name: str, state: _State, like: _State, filters: int) -> _State:
        """Give the state before the last the size and the channels of this cell."""
        graph = self.graph
        if state.level != like.level:
            halves = (filters // 2, filters - filters // 2)
            rectified = self.relu(state)
            # The second path sees the pixels between those of the first.
            made = []
            for first, half in enumerate(halves):
                seen = self._every_other(f"{name}_{first}", rectified, first)
                made.append(graph.conv(f"{name}_{first}_conv", seen, (state.channels, half, 1), relu=False))
            return _State(graph.node("Concat", made, name, axis=1), filters, like.level)
        if state.channels != filters:
            graph.conv(name, self.relu(state), (state.channels, filters, 1), relu=False)
            return _State(name, filters, like.level)
        return state

    def _every_other(self, name: str, source: str, first: int) -> str:
        """Every other row and column, from the first or the second on."""
        numbers = {"from": [first] * 2, "to": [2**31 - 1] * 2, "axes": [2, 3], "steps": [2, 2]}
        given = [self.graph.weight(f"{name}_{n}", np.array(v, np.int64)) for n, v in numbers.items()]
        return self.graph.node("Slice", [source, *given], name)

    def _operator(self, name: str, kind: str, state: _State, stride: int) -> str:
        graph = self.graph
        if kind.startswith("separable"):
            return self._separable(name, state, int(kind[-1]), stride)
        if kind in ("average", "max"):
            pool = "AveragePool" if kind == "average" else "MaxPool"
            return graph.pool(pool, name, state.name, 3, stride=stride, pad=1)
        return state.name

    def _separable(self, name: str, state: _State, kernel: int, stride: int) -> str:
        """Twice: rectify, a filter for each channel, and a 1x1 convolution."""
        graph, channels = self.graph, state.channels
        for n in range(2):
            source = self.relu(state)
            filters = graph.weight(f"{name}_{n}_deep_w", graph.he((channels, 1, kernel, kernel), kernel * kernel))
            pads, strides = [kernel // 2] * 4, [1 if n else stride] * 2
            deep = graph.node("Conv", [source, filters], f"{name}_{n}_deep", pads=pads, strides=strides, group=channels)
            weights = graph.he((channels, channels, 1, 1), 2 * channels)
            graph.conv_of(f"{name}_{n}", deep, weights, graph.small(channels), relu=False)
            state = _State(f"{name}_{n}", channels, state.level)
        return state.name
