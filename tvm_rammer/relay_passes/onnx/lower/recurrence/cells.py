"""One step of the recurrent layers of ONNX (operators LSTM, GRU and RNN), in operators that TVM's frontend has.

The equations are those of ONNX's specification (opset 22, the same since opset 7). A state that is None is zero,
which saves its products with weights. What a gate makes of it is computed: a gate that is NaN stays so.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...emit import Emitter
from .matrices import Matrix

Activation = Callable[[str], str]
"""Adds the nodes of an activation function."""

_PLAIN = {n.lower(): n for n in ("Relu", "Tanh", "Sigmoid", "Softsign", "Softplus")}
_WITH_ALPHA = {"leakyrelu": ("LeakyRelu", 0.01), "thresholdedrelu": ("ThresholdedRelu", 1.0), "elu": ("Elu", 1.0)}
_WITH_BOTH = {"hardsigmoid": (0.2, 0.5), "affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of one direction of a layer: names, and sizes.

    Parameters
    ----------
    r : Matrix
        Of the hidden state, [hidden, gates x hidden].
    peephole : tuple of str
        LSTM's weights of the cell state for gates i, o and f, [hidden] each; empty where there are none.
    new_bias : str or None
        GRU's bias Rbh, [hidden], where it is added before the reset.
    hidden : int
    block : int
        How many columns of a gate lie side by side, then as many of the next gate: all `hidden` of them, or a divisor.
    """

    r: Matrix
    peephole: tuple[str, ...]
    new_bias: str | None
    hidden: int
    block: int


@dataclass(frozen=True, slots=True)
class State:
    """What a cell hands on to the next step: names of [batch, hidden] arrays; the cell state is LSTM's."""

    h: str | None = None
    c: str | None = None


class Cell(ABC):
    """One direction of a recurrent layer.

    Parameters
    ----------
    emit : Emitter
    weights : Weights
    activations : sequence of callable
        As many as `DEFAULTS` has.
    clip : float or None
        Sums are kept within plus and minus this before an activation.
    coupled : bool
        The attribute that `COUPLED` names.
    """

    GATES: int
    PARTS: tuple[tuple[int, int], ...]
    """Which gates, the first and how many, are computed together: a step gets the layer's input for each part."""
    DEFAULTS: tuple[str, ...]
    COUPLED = ""

    def __init__(
        self, emit: Emitter, weights: Weights, activations: Sequence[Activation], clip: float | None, coupled: bool
    ) -> None:
        self.emit, self.weights, self.coupled = emit, weights, coupled
        self._activations, self._clip = activations, clip

    @abstractmethod
    def step(self, x: Sequence[str], before: State) -> State:
        """Add the nodes of a step.

        Parameters
        ----------
        x : sequence of str
            For each of `PARTS` the product of the layer's input and its weights W, with the biases,
            [batch, gates x hidden].
        before : State
        """

    def activate(self, which: int, total: str) -> str:
        """Apply one of the layer's activation functions."""
        if self._clip is not None:
            low, high = self.emit.number(-self._clip), self.emit.number(self._clip)
            total = self.emit("Min", self.emit("Max", total, low), high)
        return self._activations[which](total)

    def gate(self, total: str, first: int, count: int = 1, of: int = 0) -> str:
        """Some neighbouring gates of a sum of all of them, or of as many as it has."""
        weights = self.weights
        return columns_of(
            self.emit, total, weights.hidden, weights.block, of or self.GATES, range(first, first + count)
        )


def columns_of(emit: Emitter, total: str, hidden: int, block: int, of: int, gates: range) -> str:
    """The columns of some neighbouring gates, of `of` that lie as `Weights.block` says: [batch, gates x hidden]."""
    if block == hidden:
        return emit.part(total, 1, gates.start * hidden, gates.stop * hidden)
    blocks = emit.reshape(total, [-1, hidden // block, of, block])
    return emit.reshape(emit.part(blocks, 2, gates.start, gates.stop), [-1, len(gates) * hidden])


class Rnn(Cell):
    """Ht = f(Xt W^T + Ht-1 R^T + Wb + Rb)."""

    GATES, PARTS, DEFAULTS = 1, ((0, 1),), ("Tanh",)

    def step(self, x: Sequence[str], before: State) -> State:
        (total,) = x
        if before.h is not None:
            total = self.emit("Add", total, self.weights.r.times(self.emit, before.h))
        return State(self.activate(0, total))


class Lstm(Cell):
    """Gates i, o, f and the new values c; with peepholes, if there are any. `coupled` forgets what i does not take."""

    GATES, PARTS, DEFAULTS, COUPLED = 4, ((0, 4),), ("Sigmoid", "Tanh", "Tanh"), "input_forget"

    def step(self, x: Sequence[str], before: State) -> State:
        emit, (total,) = self.emit, x
        if before.h is not None:
            total = emit("Add", total, self.weights.r.times(emit, before.h))
        i = self.activate(0, self._peep(self.gate(total, 0), 0, before.c))
        new = emit("Mul", i, self.activate(1, self.gate(total, 3)))
        if self.coupled:
            f = emit("Sub", emit.number(1.0), i)
        else:
            f = self.activate(0, self._peep(self.gate(total, 2), 2, before.c))
        new = emit("Add", emit("Mul", f, before.c or emit.number(0.0)), new)
        o = self.activate(0, self._peep(self.gate(total, 1), 1, new))
        return State(emit("Mul", o, self._activations[2](new)), new)

    def _peep(self, total: str, gate: int, c: str | None) -> str:
        if c is None or not self.weights.peephole:
            return total
        return self.emit("Add", total, self.emit("Mul", self.weights.peephole[gate], c))


class Gru(Cell):
    """Gates z and r, and the new values h; `coupled` resets what R makes of the state, not the state."""

    GATES, PARTS, DEFAULTS, COUPLED = 3, ((0, 2), (2, 1)), ("Sigmoid", "Tanh"), "linear_before_reset"

    def step(self, x: Sequence[str], before: State) -> State:
        emit, h, r = self.emit, before.h, self.weights.r.name
        gates, new = x
        product = h and emit("MatMul", h, r if self.coupled else self.gate(r, 0, 2))
        if product:
            gates = emit("Add", gates, self.gate(product, 0, 2) if self.coupled else product)
        z, reset = (self.activate(0, self.gate(gates, n, of=2)) for n in (0, 1))
        recurrent = self._coupled(reset, product) if self.coupled else self._uncoupled(reset, h)
        made = emit("Mul", emit("Sub", emit.number(1.0), z), self.activate(1, emit("Add", new, recurrent)))
        return State(emit("Add", made, emit("Mul", z, h)) if h else made)

    def _uncoupled(self, reset: str, h: str | None) -> str:
        """What the new values get of the state that is reset."""
        emit = self.emit
        return emit("MatMul", emit("Mul", reset, h or emit.number(0.0)), self.gate(self.weights.r.name, 2))

    def _coupled(self, reset: str, product: str | None) -> str:
        """What they get of the product with the whole state, and its bias, once that is reset."""
        emit = self.emit
        terms = [term for term in (product and self.gate(product, 2), self.weights.new_bias) if term]
        return emit("Mul", reset, emit("Add", *terms) if len(terms) == 2 else (*terms, emit.number(0.0))[0])


CELLS: dict[str, type[Cell]] = {"LSTM": Lstm, "GRU": Gru, "RNN": Rnn}


def activation(emit: Emitter, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Activation | None:
    """The activation function of a name in ONNX's specification; None for any other.

    Parameters
    ----------
    emit : Emitter
    name : str
        In capital or small letters.
    alphas, betas : iterator of float
        The attributes `activation_alpha` and `activation_beta`: functions take theirs in order.
    """
    known = name.lower()
    if known in _PLAIN:
        return lambda x: emit(_PLAIN[known], x)
    if known in _WITH_ALPHA:
        kind, default = _WITH_ALPHA[known]
        alpha = next(alphas, default)
        return lambda x: emit(kind, x, alpha=alpha)
    if known not in _WITH_BOTH:
        return None
    alpha, beta = (next(given, default) for given, default in zip((alphas, betas), _WITH_BOTH[known], strict=True))
    if known == "hardsigmoid":
        return lambda x: emit("HardSigmoid", x, alpha=alpha, beta=beta)
    if known == "affine":
        return lambda x: emit("Add", emit("Mul", x, emit.number(alpha)), emit.number(beta))
    return lambda x: emit("Mul", emit("Tanh", emit("Mul", x, emit.number(beta))), emit.number(alpha))
