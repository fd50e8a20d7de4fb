"""Random modules as in NAS-Bench-101 (Ying et al., ICML 2019): small graphs of convolutions and pools."""

import random
from dataclasses import dataclass

import onnx

from .onnx_tools.graph import OnnxGraph

KINDS = ("conv3x3", "conv1x1", "maxpool3x3")
VERTICES, EDGES, OPERATORS = 7, 9, 9
"""At most so many vertices, the input and the output among them, edges, and operators."""


@dataclass(frozen=True, slots=True)
class NasbenchModule:
    """A directed acyclic graph: vertex 0 is the input, the last one the output, all others are operators.

    Parameters
    ----------
    kinds : tuple of str
        One of `KINDS` for each vertex between input and output.
    edges : tuple of (int, int)
        Each to a vertex of a greater number. Every vertex lies on a path from the input to the output.
    """

    kinds: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]

    def sources(self, vertex: int) -> tuple[int, ...]:
        """The vertices that a vertex reads; their sum, where there are several."""
        return tuple(a for a, b in self.edges if b == vertex)

    @property
    def operators(self) -> int:
        """Convolutions, pools, and sums: one where a vertex has several sources."""
        sums = sum(len(self.sources(v)) > 1 for v in range(1, len(self.kinds) + 2))
        return len(self.kinds) + sums


def random_module(seed: int) -> NasbenchModule:
    """Draw a module with one operator at least and `OPERATORS` at most.

    As NAS-Bench-101 samples them: each edge among `VERTICES` vertices is there with probability 1/2, what lies on no
    path from the input to the output goes away, and what has more than `EDGES` edges then is drawn anew.
    """
    rng = random.Random(seed)
    while True:
        drawn = [(a, b) for b in range(1, VERTICES) for a in range(b) if rng.random() < 0.5]
        kinds = [rng.choice(KINDS) for _ in range(VERTICES - 2)]
        module = _pruned(drawn, kinds)
        if module and len(module.edges) <= EDGES and 1 <= module.operators <= OPERATORS:
            return module


def _pruned(edges: list[tuple[int, int]], kinds: list[str]) -> NasbenchModule | None:
    """Keep what lies between input and output; None where nothing does."""
    last = VERTICES - 1
    forward, backward = {0}, {last}
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        forward |= {b} if a in forward else set()
    for a, b in sorted(edges, key=lambda edge: -edge[0]):
        backward |= {a} if b in backward else set()
    kept = sorted(forward & backward)
    if not {0, last} <= set(kept) or len(kept) == 2:
        return None
    number = {v: n for n, v in enumerate(kept)}
    left = tuple(sorted((number[a], number[b]) for a, b in edges if a in number and b in number))
    return NasbenchModule(tuple(kinds[v - 1] for v in kept[1:-1]), left)


def nasbench(
    module: NasbenchModule, *, channels: int = 128, size: int = 32, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Build a module as a model.

    Parameters
    ----------
    module : NasbenchModule
    channels, size : int
        Of all images; 128 and 32 are those of NAS-Bench-101's first stack.
    batch : int
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Input `x` and output `y`, float32 [batch, channels, size, size]. Convolutions have a bias, as batch norm leaves
        it, and a rectifier. Unlike in NAS-Bench-101 all vertices have all channels, and the output is a sum too.
    """
    graph = OnnxGraph(seed)
    last = len(module.kinds) + 1
    made = ["x"]
    for v in range(1, last + 1):
        read = [made[s] for s in module.sources(v)]
        at = read[0]
        for n, other in enumerate(read[1:], 1):
            at = graph.node("Add", [at, other], f"sum{v}_{n}")
        made.append(_operator(graph, f"v{v}", module.kinds[v - 1], at, channels) if v < last else at)
    graph.node("Identity", [made[-1]], "y")
    shape = (batch, channels, size, size)
    return graph.model("nasbench", {"x": shape}, {"y": shape})


def _operator(graph: OnnxGraph, name: str, kind: str, source: str, channels: int) -> str:
    if kind == "maxpool3x3":
        return graph.pool("MaxPool", name, source, 3, pad=1)
    return graph.conv(name, source, (channels, channels, int(kind[-1])))
