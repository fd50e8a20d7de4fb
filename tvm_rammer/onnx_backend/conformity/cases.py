"""ONNX's backend tests, one by one, and the verdict on each."""

import pathlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

from ...errors import RammerError, first_line

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
"""Those whose models come with the onnx package."""

RIGHT, REFUSED, WRONG, FOREIGN, CRASH, HANG = OUTCOMES = ("right", "refused", "wrong", "foreign", "crash", "hang")
"""Ends of a case. `foreign`: an exception that is no RammerError."""


ROUNDING = dict.fromkeys(
    ("node/test_dft_inverse", "node/test_dft_inverse_opset19"),
    (1e-6, "NumPy's transform in float32 leaves 2e-7 where the exact result is 0"),
)
"""Cases whose expected values are rounded by more than their tolerance; by what absolute one they are judged."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a case ended.

    Parameters
    ----------
    name : str
    operator : str
        What the case is about.
    outcome : str
        One of `OUTCOMES`.
    message : str
        Of an error, or where the results differ.
    seconds : float
    """

    name: str
    operator: str
    outcome: str
    message: str = ""
    seconds: float = 0.0


@cache
def load_cases() -> dict[str, TestCase]:
    """All cases by their names, the kind before them: `node/test_abs`."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = {f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)}
    return dict(sorted(found.items()))


def operator_of(name: str, case: TestCase) -> str:
    """The operator that a case is about; `models` where there are several."""
    model = model_of(case)
    operators = {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node}
    if (name.startswith("node/") and name.endswith("_expanded")) or "_expanded_" in name:
        original = load_cases().get(name.partition("_expanded")[0])
        return operator_of("", original) if original is not None else "expanded functions"
    return operators.pop() if len(operators) == 1 else "models of several operators"


def judge(name: str, case: TestCase) -> Verdict:
    """Run a case and compare its results by its own tolerances."""
    from onnx.backend.test.runner import Runner

    from ..backend import RammerBackend

    operator = operator_of(name, case)
    atol, _ = ROUNDING.get(name, (case.atol, ""))
    try:
        prepared = RammerBackend.prepare(model_of(case))
        for inputs, expected in data_sets(case):
            results = prepared.run(inputs)
            try:
                Runner.assert_similar_outputs(expected, results, case.rtol, atol)
            except (AssertionError, AttributeError, TypeError) as error:
                return Verdict(name, operator, WRONG, " ".join(str(error).split())[:300])
    except RammerError as error:
        return Verdict(name, operator, REFUSED, str(error))
    except Exception as error:
        return Verdict(name, operator, FOREIGN, f"{type(error).__name__}: {first_line(error)}")
    return Verdict(name, operator, RIGHT)


def model_of(case: TestCase) -> onnx.ModelProto:
    """The model of a case."""
    if case.model is not None:
        return case.model
    return onnx.load(pathlib.Path(str(case.model_dir)) / "model.onnx")


def data_sets(case: TestCase) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs of a case, and what it expects."""
    if case.data_sets is not None:
        for inputs, outputs in case.data_sets:
            yield [_array(value) for value in inputs], [_array(value) for value in outputs]
        return
    graph = model_of(case).graph
    for folder in sorted(pathlib.Path(str(case.model_dir)).glob("test_data_set*")):
        yield _read(folder, "input", graph.input), _read(folder, "output", graph.output)


def _read(folder: pathlib.Path, side: str, values: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    found: list[Any] = []
    for number in range(len(list(folder.glob(f"{side}_*.pb")))):
        content = (folder / f"{side}_{number}.pb").read_bytes()
        kind = values[number].type.WhichOneof("value")
        if kind == "sequence_type":
            found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
        elif kind == "optional_type":
            found.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
        else:
            found.append(numpy_helper.to_array(onnx.TensorProto.FromString(content)))
    return found


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
