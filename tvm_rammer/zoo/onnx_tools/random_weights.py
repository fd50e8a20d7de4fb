"""Random weights for a model that came without: scaled so that activations neither vanish nor explode.

The light models of the `onnx` package have weights that are all equal. Their outputs are flat or saturated, so that
an error of zero says nothing about them.
"""

import zlib
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

_Role = tuple[str, int]
"""Operator that reads a weight, and as which of its inputs."""

_PASS_ON = ("Unsqueeze", "Squeeze", "Reshape", "Identity")
"""Operators that show a weight to the next one in another shape."""


def random_weights(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """Give a model seeded random weights.

    Parameters
    ----------
    model : onnx.ModelProto
        Its float32 initializers, and the results of its ConstantOfShape nodes of constant shape, are its weights.
        Is not changed.
    seed : int

    Returns
    -------
    onnx.ModelProto
        The same graph with initializers in the place of the ConstantOfShape nodes. Matrices and filters have He's
        variance, 2 / fan-in; scales and variances are positive, near 1, or 1/3 at
        the end of a residual branch; all else is small. A tensor depends on the
        seed, its name and its shape alone.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    known = {t.name: t for t in graph.initializer}
    roles = _roles(graph)
    weights: dict[str, np.ndarray] = {}
    for name, tensor in known.items():
        if tensor.data_type == TensorProto.FLOAT and name in roles:
            weights[name] = _draw(name, tuple(tensor.dims), roles[name], seed)
    filled = [n for n in graph.node if n.op_type == "ConstantOfShape" and n.input[0] in known and _is_float(n)]
    for node in filled:
        shape = tuple(int(s) for s in numpy_helper.to_array(known[node.input[0]]))
        weights[node.output[0]] = _draw(node.output[0], shape, roles.get(node.output[0], ("", 0)), seed)
    _replace(graph, weights, {n.output[0] for n in filled})
    return made


def _is_float(node: onnx.NodeProto) -> bool:
    """ConstantOfShape makes float32 zeros where it says nothing else."""
    return all(a.t.data_type == TensorProto.FLOAT for a in node.attribute if a.name == "value")


def _roles(graph: onnx.GraphProto) -> dict[str, _Role]:
    """For each value, the first operator that computes with it."""
    roles: dict[str, _Role] = {}
    summed = {i for n in graph.node if n.op_type == "Sum" for i in n.input}
    for node in reversed(graph.node):
        for i, name in enumerate(node.input):
            if node.op_type in _PASS_ON:
                if i == 0 and node.output[0] in roles:
                    roles[name] = roles[node.output[0]]
            else:
                roles[name] = (_kind(node, summed), i)
    return roles


def _kind(node: onnx.NodeProto, summed: set[str]) -> str:
    if node.op_type == "Gemm" and any(a.name == "transB" and a.i for a in node.attribute):
        return "GemmT"
    if node.op_type == "BatchNormalization" and node.output[0] in summed:
        return "Branch"  # of a residual network: sixteen sums in a row must not double the variance each
    return node.op_type


def _draw(name: str, shape: tuple[int, ...], role: _Role, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    draw = _DRAWS.get(role, _small)
    return np.asarray(draw(rng, shape), np.float32)


def _small(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return 0.1 * rng.standard_normal(shape)


def _near_one(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.7, 1.1, shape)


def _third(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.uniform(0.2, 0.5, shape)


def _he(fan_in: Callable[[tuple[int, ...]], int]) -> Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]:
    return lambda rng, shape: rng.standard_normal(shape) * np.sqrt(2 / max(1, fan_in(shape)))


_DRAWS: Mapping[_Role, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    ("Conv", 1): _he(lambda shape: int(np.prod(shape[1:]))),
    ("MatMul", 1): _he(lambda shape: shape[-2] if len(shape) > 1 else 1),
    ("Gemm", 1): _he(lambda shape: shape[-2] if len(shape) > 1 else 1),
    ("GemmT", 1): _he(lambda shape: shape[-1]),
    ("Mul", 0): _near_one,
    ("Mul", 1): _near_one,
    ("BatchNormalization", 1): _near_one,
    ("BatchNormalization", 4): _near_one,
    ("Branch", 1): _third,
    ("Branch", 4): _near_one,
}


def _replace(graph: onnx.GraphProto, weights: Mapping[str, np.ndarray], filled: set[str]) -> None:
    """Put the weights in, and take out the nodes that filled tensors, with what only they read."""
    nodes = [n for n in graph.node if not (n.op_type == "ConstantOfShape" and n.output[0] in filled)]
    read = {i for n in nodes for i in n.input} | {o.name for o in graph.output}
    kept = [t for t in graph.initializer if t.name in read and t.name not in weights]
    dropped = {t.name for t in graph.initializer if t.name not in read}
    inputs = [i for i in graph.input if i.name not in dropped]
    del graph.node[:], graph.initializer[:], graph.input[:]
    graph.node.extend(nodes)
    graph.initializer.extend(kept)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items() if name in read)
    graph.input.extend(inputs)
