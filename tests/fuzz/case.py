"""What a case is, and what may come of it."""

import pathlib
import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np

OUTCOMES = ("right", "refused", "skipped", "wrong", "foreign", "crash", "hang")
FAILURES = frozenset(OUTCOMES[3:])


@dataclass(frozen=True)
class ModelCase:
    """An ONNX model, as bytes, with values for its inputs; what is not given is drawn when the model is compiled."""

    kind: str
    seed: int
    data: bytes
    feeds: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class ScriptCase:
    """A module of TVM, as a recipe (`generate.scripts`), with values for its inputs."""

    kind: str
    seed: int
    recipe: Any
    feeds: dict[str, np.ndarray] = field(default_factory=dict)


Case = ModelCase | ScriptCase


@dataclass(frozen=True)
class Report:
    """What came of a case.

    Attributes
    ----------
    outcome : str
        One of `OUTCOMES`.
    detail : str
        What was wrong, or the error's type and message.
    where : str
        The innermost function of this package that an error came through, or the stage that crashed or hung.
    """

    outcome: str
    detail: str = ""
    where: str = ""

    @property
    def failed(self) -> bool:
        return self.outcome in FAILURES


def save(case: Case, path: pathlib.Path) -> None:
    path.write_bytes(pickle.dumps(case))


def load(path: pathlib.Path) -> Case:
    case = pickle.loads(path.read_bytes())
    assert isinstance(case, Case)
    return case
