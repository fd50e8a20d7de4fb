"""Providers, as ONNX Runtime calls what a session runs on: here there is one."""

from collections.abc import Mapping, Sequence
from typing import Any

from .. import debug
from ..arguments import names_of
from ..errors import ModelError

CPU_PROVIDER = "CPUExecutionProvider"


def check_providers(providers: Sequence[Any] | None, options: Sequence[Mapping[str, Any]] | None) -> None:
    """Look at the providers that a session is given, and at the options of each.

    Raises
    ------
    ModelError
        "CPUExecutionProvider" is not among them, or they are none.
    """
    names = [_provider(entry) for entry in names_of("providers", providers or ())]
    told = names_of("provider_options", options or ())
    if told and len(told) != len(names):
        raise ModelError(f"there are {len(names)} providers and options of {len(told)}; give as many of both")
    if names and CPU_PROVIDER not in names:
        raise ModelError(
            f"the providers are {', '.join(names)}, and a session runs on {CPU_PROVIDER}; add it, or compile for a GPU "
            "by tvm_rammer.compile(model, target='cuda:h200')"
        )
    if passed := [name for name in names if name != CPU_PROVIDER]:
        debug.say(1, f"not used: {', '.join(passed)}; the model runs on {CPU_PROVIDER}")


def _provider(entry: Any) -> str:
    """A provider's name, of a name or a pair of it and options."""
    name = entry[0] if isinstance(entry, tuple) and len(entry) == 2 else entry
    if not isinstance(name, str):
        raise ModelError(f"{entry!r} is no provider; give a name such as {CPU_PROVIDER!r}")
    return name
