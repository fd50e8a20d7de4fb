"""The dimension whose size a compiled model learns from each call: the length of its sequences."""

import json
from dataclasses import asdict, dataclass
from typing import Self

LENGTH = "rammer.length"
"""An attribute of a Relax function "main" whose last parameter is a length: the text of a `Length`."""

LOOPS = frozenset(["GRU", "LSTM", "RNN", "Scan"])
"""Operators of ONNX whose number of steps may be such a length."""


@dataclass(frozen=True, slots=True)
class Length:
    """A length from 1 to a bound.

    The model that is compiled has the rows of its sequences as the first axis of inputs and results, as many as there
    may be, and one more input, the length of a call.

    Parameters
    ----------
    name : str
        Of the dimension.
    most : int
        The greatest length.
    room : int
        How many rows the arrays have, at least as many as `most`.
    inputs : tuple of (int or None)
        For each input of the model which of its axes has this length; None for none.
    outputs : tuple of (int or None)
        For each of its results; empty before they are known.
    """

    name: str
    most: int
    room: int
    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...] = ()

    def text(self) -> str:
        """As the value of an attribute."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        """What a text says."""
        told = json.loads(text)
        return cls(told["name"], told["most"], told["room"], tuple(told["inputs"]), tuple(told["outputs"]))
