"""Recurrent layers of PyTorch, which stay whole while a graph is traced: an operator of our own stands for one.

PyTorch would take LSTM, GRU and RNN layers apart step by step. What has projections (`proj_size`), or drops out in
training, still is.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm import relax

from ..loops.recurrent_layer import RecurrentLayer, call_recurrent

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
NAMESPACE = "tvm_rammer"


@functools.cache
def recurrent_operator() -> Any:
    """The operator `tvm_rammer.recurrent`, which PyTorch is told of once.

    It takes what `aten.lstm.input` and its like do, but for dropout, and before that which of them it is. The states
    are a list, and so are the results.
    """
    import torch

    library = torch.library.Library(NAMESPACE, "DEF")
    library.define(
        "recurrent(str kind, Tensor input, Tensor[] states, Tensor[] weights, bool has_biases, int num_layers, "
        "bool bidirectional, bool batch_first) -> Tensor[]"
    )
    library.impl("recurrent", _run, "CPU")
    torch.library.register_fake(f"{NAMESPACE}::recurrent", _shapes, lib=library)
    _LIBRARIES.append(library)
    return torch.ops.tvm_rammer.recurrent.default


_LIBRARIES: list[Any] = []
"""PyTorch forgets an operator with its library."""


def _run(
    kind: str, x: Any, states: Sequence[Any], weights: Sequence[Any], biases: bool, layers: int, both: bool, first: bool
) -> list[Any]:
    """As PyTorch itself runs the layer."""
    import torch

    operator = getattr(torch.ops.aten, kind).input
    given = states if kind == "lstm" else states[0]
    return [result.clone() for result in operator(x, given, weights, biases, layers, 0.0, False, both, first)]


def _shapes(
    kind: str, x: Any, states: Sequence[Any], weights: Sequence[Any], biases: bool, layers: int, both: bool, first: bool
) -> list[Any]:
    """Results without data, with the strides that PyTorch gives them."""
    steps, batch = (x.shape[1], x.shape[0]) if first else x.shape[:2]
    y = x.new_empty((steps, batch, states[0].shape[2] * (2 if both else 1)))
    return [y.transpose(0, 1) if first else y, *(x.new_empty(state.shape) for state in states)]


@contextmanager
def whole_layers() -> Iterator[None]:
    """While a graph is traced, recurrent layers stay whole."""
    import torch

    operators = {kind: getattr(torch.ops.aten, kind).input for kind in KINDS}
    kernels = {kind: dict(operator.py_kernels) for kind, operator in operators.items()}
    for kind, operator in operators.items():
        operator.py_kernels.update({key: _kept(kind, kernel) for key, kernel in kernels[kind].items()})
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        for kind, operator in operators.items():
            operator.py_kernels.update(kernels[kind])
            operator._dispatch_cache.clear()


def _kept(kind: str, general: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of PyTorch that becomes ours, where ours can be it."""

    def layer(
        x: Any, states: Any, weights: Sequence[Any], biases: bool, layers: int, dropout: float, train: bool, both: bool,
        first: bool,
    ) -> Any:  # fmt: skip
        plain = len(weights) == layers * (2 if both else 1) * (4 if biases else 2)
        if not plain or (train and dropout):
            return general(x, states, weights, biases, layers, dropout, train, both, first)
        given = list(states) if kind == "lstm" else [states]
        return tuple(recurrent_operator()(kind, x, given, list(weights), biases, layers, both, first))

    return layer


def convert_recurrent(importer: Any, node: Any) -> relax.Expr:
    """The call of a layer in Relax (`loops.recurrent_layer`), for TVM's frontend."""
    kind, x, states, weights, biases, layers, both, first = node.args
    layer = RecurrentLayer(kind, layers, biases, both, first)
    x, *others = (importer._retrieve_args(arg) for arg in (x, *states, *weights))
    call = call_recurrent(layer, x, others[: layer.states], others[layer.states :])
    return importer.block_builder.emit(call)
