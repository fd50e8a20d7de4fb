"""What is right for a module of random functions by NumPy alone, and how near it one has to be."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np

from ..generate.recipe import Buffer, Function
from ..generate.scripts import Module
from .compare import difference, largest_of, unit_of
from .evaluate import Values, evaluate

_SHAKES = {"float16": 2e-3, "float32": 1e-6}


class Evaluated:
    """The results of a module, as NumPy computes them.

    Roundings explain a difference where inputs that are a little different move the results as far, or where these are
    as far from float64's, as those of a long sum in a narrow type are.

    Parameters
    ----------
    module : Module
    feeds : sequence of arrays
        Of its parameters.
    """

    def __init__(self, module: Module, feeds: Sequence[np.ndarray]) -> None:
        found = _run(module, feeds)
        others = [_run(module, [_shaken(a, s) for a in feeds]) for s in (1, -1)]
        others.append(_run(_widened(module), [_widest(a) for a in feeds]))
        self.want = [np.asarray(v.data) for v in found]
        self.slack = []
        for i, value in enumerate(found):
            moved = [np.where(o[i].known, away(o[i].data, value.data), np.inf) for o in others]
            self.slack.append(np.where(value.known, 8 * np.max(moved, axis=0), np.inf))
        arrays = [
            *feeds,
            *(np.where(v.known, v.data, 0).astype(w.dtype) for v, w in zip(found, self.want, strict=True)),
        ]
        self.unit, self.largest = unit_of(arrays) or 1e-9, largest_of(arrays)

    def fault(self, got: Sequence[np.ndarray], slack: Sequence[np.ndarray] | None = None) -> str | None:
        """Say what is wrong with results, or None; `slack` is what each element may be off by besides."""
        more = [np.zeros(s.shape) for s in self.slack] if slack is None else slack
        most = [np.maximum(a, b) for a, b in zip(self.slack, more, strict=True)]
        return difference(got, self.want, self.unit, self.largest, most)


def _run(module: Module, feeds: Sequence[np.ndarray]) -> list[Values]:
    known = {p.name: Values(a, np.full(a.shape, True)) for p, a in zip(module.params, feeds, strict=True)}
    functions = {f.name: f for f in module.functions}
    for line in module.lines:
        if line.function:
            made = evaluate(functions[line.function], [known[name] for name in line.reads])
        else:
            made = [_operator(line.text, {name: known[name] for name in line.reads})]
        known |= {field.name: value for field, value in zip(line.fields, made, strict=True)}
    return [known[b.name] for b in module.results()]


def _operator(text: str, reads: dict[str, Values]) -> Values:
    """What an operator of Relax makes; it is known only where all that it reads is."""
    with np.errstate(all="ignore"):
        data = eval(text, {"R": _RELAX, **{name: value.data for name, value in reads.items()}})
    return Values(data, np.full(data.shape, all(value.known.all() for value in reads.values())))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _along(ufunc: Any) -> Callable[..., np.ndarray]:
    return lambda x, axis=None: np.asarray(ufunc(x, axis=None if axis is None else tuple(axis)), x.dtype)


def _strided_slice(x: np.ndarray, axes: list[int], begin: list[int], end: list[int], strides: list[int]) -> np.ndarray:
    (axis,) = axes
    cut = [slice(None)] * axis + [slice(begin[0], end[0], strides[0])]
    return x[tuple(cut)]


def _pad(x: np.ndarray, width: list[int], mode: Literal["constant", "reflect"]) -> np.ndarray:
    return np.pad(x, list(zip(width[::2], width[1::2], strict=True)), mode)


_RELAX = SimpleNamespace(
    nn=SimpleNamespace(relu=lambda x: np.maximum(x, x.dtype.type(0)), softmax=_softmax, pad=_pad),
    repeat=np.repeat, tile=np.tile, broadcast_to=np.broadcast_to,
    exp=np.exp, minimum=np.minimum, const=lambda n, dtype: np.asarray(n, dtype), tanh=np.tanh, add=np.add,
    multiply=np.multiply, sigmoid=lambda x: 1 / (1 + np.exp(-x)), sum=_along(np.sum), max=_along(np.max),
    mean=_along(np.mean), permute_dims=lambda x, axes=None: np.transpose(x, axes), reshape=np.reshape,
    expand_dims=np.expand_dims, strided_slice=_strided_slice, flip=np.flip, cumsum=np.cumsum, concat=np.concatenate,
    matmul=np.matmul,
)  # fmt: skip


def _widened(module: Module) -> Module:
    """The same module where every floating-point number has 64 bits."""

    def buffers(some: Sequence[Buffer]) -> tuple[Buffer, ...]:
        return tuple(replace(b, dtype=_wide(b.dtype)) for b in some)

    def widened(f: Function) -> Function:
        stages = tuple(replace(s, body=_wide(s.body)) for s in f.stages)
        return replace(
            f, inputs=buffers(f.inputs), scratch=buffers(f.scratch), results=buffers(f.results), stages=stages
        )

    return replace(module, params=buffers(module.params), functions=tuple(map(widened, module.functions)))


def _wide(e: Any) -> Any:
    """An expression, or the name of a type, with float64 in the place of narrower types."""
    if isinstance(e, tuple):
        return tuple(map(_wide, e))
    return "float64" if e in ("float16", "float32") else e


def _widest(a: np.ndarray) -> np.ndarray:
    return a.astype("float64") if a.dtype.kind == "f" else a


def _shaken(a: np.ndarray, sign: int) -> np.ndarray:
    eps = _SHAKES.get(str(a.dtype), 0.0)
    return (a * (1 + sign * eps)).astype(a.dtype)


def away(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How far numbers are from others: infinitely where one of the two is no finite number."""
    with np.errstate(all="ignore"):
        away = np.abs(np.asarray(a, "float64") - np.asarray(b, "float64"))
    return np.where(np.asarray(a) == np.asarray(b), 0.0, np.where(np.isfinite(away), away, np.inf))
