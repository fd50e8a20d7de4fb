"""An ONNX model as a function of PyTorch: one call of PyTorch's for each operator, stacked LSTM layers one for all.

It needs no package but PyTorch, which its callers import.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...errors import ToolError

Values = dict[str, Any]
"""By name: tensors, and lists in the place of arrays of whole numbers."""

_Step = Callable[[Values], None]
_GATES = (0, 2, 3, 1)
"""Of PyTorch's gates i, f, c, o among ONNX's i, o, f, c."""


def runner_of(
    torch: Any, nodes: Sequence[Mapping[str, Any]], constants: Mapping[str, Any], outputs: Sequence[str]
) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """Make a function that computes the results of a model.

    Parameters
    ----------
    torch : module
    nodes : sequence of mapping
        `op`, `inputs`, `outputs` and `attributes` of each operator, in an order in which they can run.
    constants : mapping
        Tensors by name, where they are to be computed with; what is a list is a shape, axes, or the like.
    outputs : sequence of str

    Returns
    -------
    callable
        From the inputs by name to the outputs. What it is given comes before a constant of that name.

    Raises
    ------
    ToolError
        The model has an operator that is not among `OPERATORS`.
    """
    steps = [_step(torch, node, constants) for node in _with_stacked_layers(nodes)]

    def run(inputs: Mapping[str, Any]) -> Sequence[Any]:
        values = {**constants, **inputs}
        for step in steps:
            step(values)
        return [values[name] for name in outputs]

    return run


def _step(torch: Any, node: Mapping[str, Any], constants: Mapping[str, Any]) -> _Step:
    """One operator as a function of the values by name."""
    if node["op"] == "LSTM":
        return _lstm_step(torch, node, constants)
    if node["op"] not in OPERATORS:
        raise ToolError(f"the comparison with PyTorch knows no operator {node['op']}; leave it out for this model")
    compute, given, made = OPERATORS[node["op"]], node["inputs"], node["outputs"]
    attributes = {**node["attributes"], "outputs": len(made)}

    def step(values: Values) -> None:
        result = compute(torch, attributes, *(values[name] if name else None for name in given))
        values.update(zip(made, result if isinstance(result, tuple) else (result,), strict=False))

    return step


def _padded(torch: Any, attributes: Mapping[str, Any], x: Any, value: float) -> tuple[Any, list[int]]:
    """An image, and the padding that PyTorch's function is to add: that on both sides, where they are equal.

    Where they are not, the image has it, of this value.
    """
    if attributes.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise ToolError(f"the comparison with PyTorch knows no auto_pad {attributes['auto_pad']}; leave it out")
    axes = x.ndim - 2
    pads = list(attributes.get("pads", [0] * 2 * axes))
    begin, end = pads[:axes], pads[axes:]
    if begin == end:
        return x, begin
    both = [side for sides in zip(reversed(begin), reversed(end), strict=True) for side in sides]
    return torch.nn.functional.pad(x, both, value=value), [0] * axes


def _conv(torch: Any, a: Mapping[str, Any], x: Any, w: Any, bias: Any = None) -> Any:
    x, pads = _padded(torch, a, x, 0.0)
    ones = [1] * (x.ndim - 2)
    compute = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")
    return compute(x, w, bias, a.get("strides", ones), pads, a.get("dilations", ones), a.get("group", 1))


def _max_pool(torch: Any, a: Mapping[str, Any], x: Any) -> Any:
    x, pads = _padded(torch, a, x, float("-inf"))
    ceil = bool(a.get("ceil_mode", 0))
    return torch.nn.functional.max_pool2d(x, a["kernel_shape"], a.get("strides", [1, 1]), pads, ceil_mode=ceil)


def _average_pool(torch: Any, a: Mapping[str, Any], x: Any) -> Any:
    counted = bool(a.get("count_include_pad", 0))
    image, pads = _padded(torch, a, x, 0.0)

    def means(of: Any) -> Any:
        return torch.nn.functional.avg_pool2d(
            of,
            a["kernel_shape"],
            a.get("strides", [1, 1]),
            pads,
            ceil_mode=bool(a.get("ceil_mode", 0)),
            count_include_pad=counted,
        )

    if counted or image is x:
        return means(image)
    return means(image) / means(_padded(torch, a, torch.ones_like(x), 0.0)[0])


def _slice(torch: Any, a: Mapping[str, Any], x: Any, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        x = torch.slice_copy(x, axis, start, min(end, x.shape[axis]), step)
    return x


def _reshape(torch: Any, a: Mapping[str, Any], x: Any, shape: Sequence[int]) -> Any:
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def _unsqueeze(torch: Any, a: Mapping[str, Any], x: Any, axes: Sequence[int] | None = None) -> Any:
    axes = a["axes"] if axes is None else axes
    for axis in sorted(axis % (x.ndim + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def _pad(torch: Any, a: Mapping[str, Any], x: Any, pads: Sequence[int] | None = None, value: Any = None) -> Any:
    if a.get("mode", "constant") != "constant" or value is not None:
        raise ToolError("the comparison with PyTorch pads with zeros only; leave it out for this model")
    pads = a["pads"] if pads is None else pads
    both = [pads[side] for axis in reversed(range(x.ndim)) for side in (axis, x.ndim + axis)]
    return torch.nn.functional.pad(x, both)


def _layer_norm(torch: Any, a: Mapping[str, Any], x: Any, scale: Any, bias: Any = None) -> Any:
    axis = a.get("axis", -1) % x.ndim
    return torch.nn.functional.layer_norm(x, x.shape[axis:], scale, bias, a.get("epsilon", 1e-5))


def _batch_norm(torch: Any, a: Mapping[str, Any], x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    return torch.nn.functional.batch_norm(x, mean, variance, scale, bias, eps=a.get("epsilon", 1e-5))


def _gemm(torch: Any, a: Mapping[str, Any], x: Any, w: Any, bias: Any) -> Any:
    product = x.t() if a.get("transA") else x, w.t() if a.get("transB") else w
    return torch.addmm(bias, *product, beta=a.get("beta", 1.0), alpha=a.get("alpha", 1.0))


def _local_response(torch: Any, a: Mapping[str, Any], x: Any) -> Any:
    return torch.nn.functional.local_response_norm(
        x, a["size"], a.get("alpha", 1e-4), a.get("beta", 0.75), a.get("bias", 1.0)
    )


def _flatten(torch: Any, a: Mapping[str, Any], x: Any) -> Any:
    return x.reshape(math.prod(x.shape[: a.get("axis", 1)]), -1)


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "Add": lambda torch, a, x, y: operator.add(x, y),
    "Sum": lambda torch, a, *terms: sum(terms[1:], terms[0]),
    "Mul": lambda torch, a, x, y: operator.mul(x, y),
    "Div": lambda torch, a, x, y: operator.truediv(x, y),
    "MatMul": lambda torch, a, x, y: torch.matmul(x, y),
    "Gemm": _gemm,
    "Sigmoid": lambda torch, a, x: torch.sigmoid(x),
    "Tanh": lambda torch, a, x: torch.tanh(x),
    "Erf": lambda torch, a, x: torch.erf(x),
    "Relu": lambda torch, a, x: torch.relu(x),
    "Clip": lambda torch, a, x, low=None, high=None: torch.clamp(x, low, high),
    "Softmax": lambda torch, a, x: torch.softmax(x, a.get("axis", -1)),
    "Dropout": lambda torch, a, x: x,
    "Split": lambda torch, a, x: torch.chunk(x, a["outputs"], a["axis"]),
    "Concat": lambda torch, a, *parts: torch.cat(parts, a["axis"]),
    "Squeeze": lambda torch, a, x, axes: torch.squeeze(x, axes),
    "Unsqueeze": _unsqueeze,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Transpose": lambda torch, a, x: x.permute(a.get("perm") or list(reversed(range(x.ndim)))),
    "Pad": _pad,
    "Slice": _slice,
    "GlobalAveragePool": lambda torch, a, x: x.mean(list(range(2, x.ndim)), keepdim=True),
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _layer_norm,
    "LRN": _local_response,
}
"""From an operator of ONNX to a function of `torch`, its attributes and the number of its `outputs`, and its inputs."""


def _with_stacked_layers(nodes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Make LSTM layers with a Squeeze between them one call: `layers` has the inputs of each."""
    stacked: list[Mapping[str, Any]] = []
    for node in nodes:
        below, squeeze = stacked[-2:] if len(stacked) > 1 else ({}, {})
        above = node["op"] == below.get("op") == "LSTM" and squeeze.get("op") == "Squeeze"
        if above and node["inputs"][0] == squeeze["outputs"][0]:
            stacked[-2:] = [{**below, "outputs": node["outputs"], "layers": [*below["layers"], node["inputs"]]}]
        else:
            stacked.append({**node, "layers": [node["inputs"]]})
    return stacked


def _lstm_step(torch: Any, node: Mapping[str, Any], constants: Mapping[str, Any]) -> _Step:
    hidden, layers = node["attributes"]["hidden_size"], node["layers"]
    first = constants[layers[0][1]]
    lstm = torch.nn.LSTM(first.shape[2], hidden, num_layers=len(layers)).to(first.device)
    for layer, (_, w, r, bias) in enumerate(layers):
        sums = constants[bias][0].reshape(2, 4, hidden)
        parts = {
            "weight_ih": constants[w][0].reshape(4, hidden, -1),
            "weight_hh": constants[r][0].reshape(4, hidden, -1),
            "bias_ih": sums[0],
            "bias_hh": sums[1],
        }
        for name, gates in parts.items():
            wanted = getattr(lstm, f"{name}_l{layer}")
            wanted.data.copy_(gates[list(_GATES)].reshape(wanted.shape))
    lstm.flatten_parameters()
    given, made = layers[0][0], node["outputs"][0]

    def step(values: Values) -> None:
        values[made] = lstm(values[given])[0].unsqueeze(1)

    return step
