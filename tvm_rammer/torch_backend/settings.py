"""The options of the backend."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..arguments import whole
from ..compilation.request import Request
from ..compilation.target import resolve_device, with_threads
from ..driver import compile
from ..errors import ModelError
from ..saving.cache import find_entry

_GIVEN = ("model", "target", "shapes", "on_new_shape", "most_shapes")
"""Arguments of `compile` that PyTorch's graph determines."""

NAMES = tuple(name for name in inspect.signature(compile).parameters if name not in _GIVEN)
"""Options that are `compile`'s."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a backend, checked.

    Parameters
    ----------
    compiling : mapping
        Keyword arguments of `tvm_rammer.compile`.
    freeze : bool
        Whether weights become constants, which are packed for the kernels.
    check : bool
        Whether the first call of each compiled graph is compared with PyTorch.
    """

    compiling: Mapping[str, Any] = field(default_factory=dict)
    freeze: bool = True
    check: bool = True


def read_options(options: Mapping[str, Any]) -> Settings:
    """Check the options of `torch.compile`.

    Raises
    ------
    ModelError, ScheduleError, TargetError
        One is unknown or has no sense.
    """
    own = ("freeze", "check")
    if unknown := [name for name in options if name not in NAMES and name not in own]:
        raise ModelError(f"unknown options {', '.join(map(repr, unknown))}; choose from {', '.join((*NAMES, *own))}")
    for name in own:
        if not isinstance(options.get(name, True), bool):
            raise ModelError(f"{name} is {options[name]!r}; give True or False")
    compiling = {name: value for name, value in options.items() if name in NAMES}
    _check(compiling)
    return Settings(compiling, options.get("freeze", True), options.get("check", True))


def _check(compiling: Mapping[str, Any]) -> None:
    """Find now what `compile` would find at the first call."""
    how = {
        name: compiling[name] for name in ("policy", "sync", "options", "tuning_logs", "explore") if name in compiling
    }
    request = Request((), (), with_threads(resolve_device("cpu"), compiling.get("threads")), **how)
    request.check_policy()
    whole("concurrency", compiling.get("concurrency", 1), 1)
    find_entry(request, compiling.get("cache", True))
