"""How TVM's passes are set by the pass context around a compilation: part of what its result depends on."""

from typing import Any


def pass_settings(context: Any) -> tuple[object, ...]:
    """The settings of a `tvm.transform.PassContext`: comparable, and hashable."""
    config = sorted((str(name), str(value)) for name, value in context.config.items())
    passes = tuple(map(str, context.required_pass)), tuple(map(str, context.disabled_pass))
    return context.opt_level, *passes, tuple(config)
