"""Inception v3 (Szegedy et al., CVPR 2016): wide modules of small convolutions, on which IOS shows most of its gain."""

from collections.abc import Sequence

import onnx

from .onnx_tools.graph import OnnxGraph

Step = tuple[int, tuple[int, int], int]
"""A convolution: filters before scaling, kernel, stride; a stride of 2 takes no padding."""


def inception_v3(
    *, size: int = 299, width: float = 1.0, classes: int = 1000, batch: int = 1, seed: int = 0
) -> onnx.ModelProto:
    """Build Inception v3 without its auxiliary classifier, batch norm folded into the convolutions.

    Parameters
    ----------
    size : int
        Of the input `x`, float32 [batch, 3, size, size]; at least 75.
    width : float
        Factor on the number of filters of each convolution.
    classes, batch : int
    seed : int
        Of the weights.

    Returns
    -------
    onnx.ModelProto
        Output `y`, float32 [batch, classes], without a softmax.
    """
    net = _Inception(seed, width)
    at, channels = "x", 3
    for filters, stride, pad in ((32, 2, 0), (32, 1, 0), (64, 1, 1)):
        at, channels = net.conv(at, channels, filters, (3, 3), stride, (pad, pad))
    at = net.pool("MaxPool", at, 2, 0)
    at, channels = net.conv(at, channels, 80, (1, 1))
    at, channels = net.conv(at, channels, 192, (3, 3), 1, (0, 0))
    at = net.pool("MaxPool", at, 2, 0)
    for features in (32, 64, 64):
        branches = [[(64, _1, 1)], [(48, _1, 1), (64, _5, 1)], [(64, _1, 1), (96, _3, 1), (96, _3, 1)]]
        at, channels = net.module(at, channels, branches, [(features, _1, 1)])
    at, channels = net.module(at, channels, [[(384, _3, 2)], [(64, _1, 1), (96, _3, 1), (96, _3, 2)]])
    for c in (128, 160, 160, 192):
        long = [(c, _1, 1), (c, _71, 1), (c, _17, 1), (c, _71, 1), (192, _17, 1)]
        branches = [[(192, _1, 1)], [(c, _1, 1), (c, _17, 1), (192, _71, 1)], long]
        at, channels = net.module(at, channels, branches, [(192, _1, 1)])
    branches = [[(192, _1, 1), (320, _3, 2)], [(192, _1, 1), (192, _17, 1), (192, _71, 1), (192, _3, 2)]]
    at, channels = net.module(at, channels, branches)
    for _ in range(2):
        at, channels = net.expanded(at, channels)
    at = net.graph.node("GlobalAveragePool", [at], "mean")
    at = net.graph.node("Flatten", [at], "features")
    net.graph.dense("y", at, channels, classes)
    return net.graph.model("inception_v3", {"x": (batch, 3, size, size)}, {"y": (batch, classes)})


_1, _3, _5, _17, _71, _13, _31 = (1, 1), (3, 3), (5, 5), (1, 7), (7, 1), (1, 3), (3, 1)


class _Inception:
    def __init__(self, seed: int, width: float) -> None:
        self.graph, self._width, self._count = OnnxGraph(seed), width, 0

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"

    def conv(
        self, source: str, channels: int, filters: int, kernel: tuple[int, int],
        stride: int = 1, pad: tuple[int, int] | None = None,
    ) -> tuple[str, int]:  # fmt: skip
        """Add a convolution and a rectifier; return its name and its filters."""
        name, filters = self._name("conv"), max(1, round(filters * self._width))
        high, wide = pad if pad is not None else ((0, 0) if stride == 2 else (kernel[0] // 2, kernel[1] // 2))
        weights = self.graph.he((filters, channels, *kernel), channels * kernel[0] * kernel[1])
        given = [source, self.graph.weight(f"{name}_w", weights)]
        given.append(self.graph.weight(f"{name}_b", self.graph.small(filters)))
        self.graph.node("Conv", given, f"{name}_sum", pads=[high, wide, high, wide], strides=[stride] * 2)
        return self.graph.node("Relu", [f"{name}_sum"], name), filters

    def pool(self, kind: str, source: str, stride: int, pad: int) -> str:
        return self.graph.pool(kind, self._name("pool"), source, 3, stride=stride, pad=pad)

    def chain(self, at: str, channels: int, steps: Sequence[Step]) -> tuple[str, int]:
        for filters, kernel, stride in steps:
            at, channels = self.conv(at, channels, filters, kernel, stride)
        return at, channels

    def module(
        self, at: str, channels: int, branches: Sequence[Sequence[Step]], pooled: Sequence[Step] = ()
    ) -> tuple[str, int]:
        """Branches side by side, and one more behind a pool; without `pooled` that one halves the size."""
        made = [self.chain(at, channels, steps) for steps in branches]
        if pooled:
            made.append(self.chain(self.pool("AveragePool", at, 1, 1), channels, pooled))
        else:
            made.append((self.pool("MaxPool", at, 2, 0), channels))
        return self.concat(made)

    def expanded(self, at: str, channels: int) -> tuple[str, int]:
        """A module whose branches fork once more, into 1x3 and 3x1."""
        made = [self.chain(at, channels, [(320, _1, 1)])]
        for steps in ([(384, _1, 1)], [(448, _1, 1), (384, _3, 1)]):
            fork, width = self.chain(at, channels, steps)
            made += [self.chain(fork, width, [(384, kernel, 1)]) for kernel in (_13, _31)]
        made.append(self.chain(self.pool("AveragePool", at, 1, 1), channels, [(192, _1, 1)]))
        return self.concat(made)

    def concat(self, parts: Sequence[tuple[str, int]]) -> tuple[str, int]:
        name = self.graph.node("Concat", [at for at, _ in parts], self._name("concat"), axis=1)
        return name, sum(channels for _, channels in parts)
