"""Cases with values that nobody expects: each input and each constant, all of it or one element, and each attribute."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase

from ...errors import RammerError, first_line
from ..backend import Prepared, RammerBackend
from .cases import FOREIGN, REFUSED, RIGHT, Verdict, data_sets, model_of, operator_of


def judge_hostile(name: str, case: TestCase, tells: Callable[[str], None]) -> Verdict:
    """Run a case with hostile values: right is what ends in results, or in an error of ours.

    What the results are, nobody says. The process is to survive. `tells` gets what is tried next.
    """
    operator = operator_of(name, case)
    try:
        prepared = RammerBackend.prepare(model_of(case))
        inputs, _ = next(data_sets(case))
        prepared.run(inputs)
    except RammerError as error:
        return Verdict(name, operator, REFUSED, str(error))
    for number, array in enumerate(inputs):
        for value, changed in _changed(array):
            tells(what := f"input {number} of {value}")
            if foreign := _foreign(prepared, [*inputs[:number], changed, *inputs[number + 1 :]]):
                return Verdict(name, operator, FOREIGN, f"{what}: {foreign}")
    other = model_of(case)
    for what, model in chain(_with_other_attributes(other), _with_other_constants(other)):
        tells(what)
        if foreign := _foreign(model, inputs):
            return Verdict(name, operator, FOREIGN, f"{what}: {foreign}")
    return Verdict(name, operator, RIGHT)


def _foreign(model: onnx.ModelProto | Prepared, inputs: list[Any]) -> str:
    """What a run ends with that is neither a result nor an error of ours; empty where there is nothing."""
    try:
        prepared = RammerBackend.prepare(model) if isinstance(model, onnx.ModelProto) else model
        prepared.run(inputs)
    except (RammerError, onnx.checker.ValidationError):
        pass
    except Exception as error:
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def _with_other_attributes(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """What is changed, and the model with it: a number of an attribute, or all of several."""
    for place, node in enumerate(model.graph.node):
        for number, attribute in enumerate(node.attribute):
            kind = _FIELDS.get(attribute.type)
            if kind is None:
                continue
            field, dtype = kind
            for value in _strings(attribute.s) if dtype == "bytes" else _values(np.dtype(dtype)):
                changed = onnx.ModelProto.FromString(model.SerializeToString())
                other = changed.graph.node[place].attribute[number]
                if field in ("i", "f", "s"):
                    setattr(other, field, value)
                else:
                    numbers = getattr(other, field)
                    numbers[:] = [value] * len(numbers)
                yield f"{node.op_type}'s {attribute.name} of {value!r}", changed


def _with_other_constants(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """What is changed, and the model with it: what may be sizes, which somebody has to believe."""
    for number, tensor in enumerate(model.graph.initializer):
        array = onnx.numpy_helper.to_array(tensor)
        for value, changed in _changed(array) if array.size <= _MOST_SIZES else ():
            other = onnx.ModelProto.FromString(model.SerializeToString())
            other.graph.initializer[number].CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
            yield f"{tensor.name} of {value!r}", other


_MOST_SIZES = 16
"""Elements of a constant that is changed."""

_FIELDS = {
    onnx.AttributeProto.INT: ("i", "int64"),
    onnx.AttributeProto.INTS: ("ints", "int64"),
    onnx.AttributeProto.FLOAT: ("f", "float32"),
    onnx.AttributeProto.FLOATS: ("floats", "float32"),
    onnx.AttributeProto.STRING: ("s", "bytes"),
}
"""Fields by an attribute's type, and the type of what is in them."""


def _changed(array: Any) -> Iterator[tuple[object, np.ndarray]]:
    """A hostile value, and the array with it everywhere, or in one place."""
    if not isinstance(array, np.ndarray) or not array.size:
        return
    for value in _values(array.dtype):
        yield value, np.full_like(array, value)
        one = array.copy()
        one.reshape(-1)[array.size // 2] = value
        yield value, one


def _strings(given: bytes) -> list[bytes]:
    return [b"", b"\xff", b"nothing", given[:-1], given + given, given + b"..." + given]


def _values(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "f":
        floats = np.finfo(dtype)
        return [np.nan, np.inf, -np.inf, floats.max, floats.min, floats.tiny / 2]
    if dtype.kind in "iu":
        lowest, highest = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        some = {lowest, highest, 0, 7, -1, -8, 10**6, 2**31, -(2**40)}
        return sorted(n for n in some if lowest <= n <= highest)
    return []
