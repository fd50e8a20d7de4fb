"""A layer of LSTM cells of primitive operators, unrolled over time."""

from dataclasses import dataclass

import numpy as np

from .graph import OnnxGraph

GATES = ("in", "forget", "new", "out")


@dataclass(frozen=True, slots=True)
class LstmState:
    """Names of what a cell hands on to the next step: hidden and cell state, float32 [batch, hidden]."""

    h: str
    c: str


class LstmLayer:
    """The weights of a layer, and the nodes of as many steps as are asked for.

    Parameters
    ----------
    graph : OnnxGraph
        Gets the weights, and the nodes.
    name : str
        Part of all names; unique in the graph.
    inputs, hidden : int
        Sizes of what a cell reads from below, and of its states.
    fused_gates : bool
        One product with all four gates' weights [inputs, 4 x hidden], then a Split. Otherwise each gate has a product
        of its own, so a cell has eight. Both compute the same.
    """

    def __init__(self, graph: OnnxGraph, name: str, inputs: int, hidden: int, *, fused_gates: bool = True) -> None:
        self._graph, self._name, self._fused = graph, name, fused_gates
        for kind, shape in (("w", (inputs, 4 * hidden)), ("u", (hidden, 4 * hidden)), ("b", (4 * hidden,))):
            array = (graph.rng.standard_normal(shape) / np.sqrt(hidden)).astype(np.float32)
            if fused_gates:
                graph.weight(f"{kind}{name}", array)
            else:
                for gate, part in zip(GATES, np.split(array, 4, axis=-1), strict=True):
                    graph.weight(f"{kind}{name}_{gate}", np.ascontiguousarray(part))

    def step(self, t: int, x: str, before: LstmState | None, h: str | None = None) -> LstmState:
        """Add the cell of one step.

        Parameters
        ----------
        t : int
            Part of all names.
        x : str
            What comes from below, float32 [batch, inputs].
        before : LstmState or None
            The state so far; None for zeros, which saves the products with them.
        h : str, optional
            A name for the new hidden state.
        """
        node, at = self._graph.node, f"_{self._name}_{t}"
        for gate, total in self._gates(at, x, before).items():
            node("Tanh" if gate == "new" else "Sigmoid", [total], f"{gate}{at}_on")
        c = node("Mul", [f"in{at}_on", f"new{at}_on"], f"add{at}" if before else f"c{at}")
        if before:
            kept = node("Mul", [f"forget{at}_on", before.c], f"keep{at}")
            c = node("Add", [kept, c], f"c{at}")
        on = node("Tanh", [c], f"c{at}_on")
        return LstmState(node("Mul", [f"out{at}_on", on], h or f"h{at}"), c)

    def _gates(self, at: str, x: str, before: LstmState | None) -> dict[str, str]:
        """The sums of the four gates, by gate."""
        if self._fused:
            total = self._total(at, "", x, before)
            names = [f"{gate}{at}" for gate in GATES]
            return dict(zip(GATES, self._graph.nodes("Split", [total], names, axis=-1), strict=True))
        return {gate: self._total(at, f"_{gate}", x, before) for gate in GATES}

    def _total(self, at: str, gate: str, x: str, before: LstmState | None) -> str:
        """x w + h u + b, for one gate or all of them."""
        node, of = self._graph.node, f"{gate}{at}"
        total = node("MatMul", [x, f"w{self._name}{gate}"], f"xw{of}")
        if before:
            product = node("MatMul", [before.h, f"u{self._name}{gate}"], f"hu{of}")
            total = node("Add", [total, product], f"xwhu{of}")
        return node("Add", [total, f"b{self._name}{gate}"], f"sum{of}")
