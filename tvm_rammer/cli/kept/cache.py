"""`tvm-rammer cache`: show what is kept of earlier compilations, or forget it."""

import argparse
import contextlib
import datetime
from typing import Any

from ... import debug


def add_parser(commands: Any) -> None:
    """Add the command to the subparsers of the command line."""
    parser = commands.add_parser("cache", help="show what is kept of earlier compilations, or forget it")
    parser.add_argument("--clear", action="store_true", help="remove all compiled models")
    parser.set_defaults(run=run, writes=())


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    from ...saving.cache import entries, trim

    folder, limit = debug.model_cache_folder(), debug.cache_bytes()
    if arguments.clear:
        print(f"removed {trim(folder, -1)} models from {folder}")
        return
    found = entries(folder)
    total = sum(size for _, size, _ in found)
    off = "; it is off: RAMMER_CACHE_BYTES is 0" if limit == 0 else f" of {limit / 1e6:.0f} MB"
    print(f"{folder}: {len(found)} models, {total / 1e6:.1f} MB{off}")
    for path, size, used in found:
        when = datetime.datetime.fromtimestamp(used).isoformat(" ", "seconds")
        print(f"  {when}  {size / 1e6:>8.1f} MB  {_summary(path)}")


def _summary(path: Any) -> str:
    """What an entry takes and returns."""
    from ...errors import RammerError
    from ...saving.file import read_facts

    with contextlib.suppress(RammerError, OSError):
        facts = read_facts(path)
        inputs, outputs = (
            ", ".join(f"{spec.name} {spec.dtype}{list(spec.shape)}" for spec in specs)
            for specs in (facts.inputs, facts.outputs)
        )
        return f"{inputs} -> {outputs}, {facts.device.units} vEUs"
    return "cannot be used here; it goes when its place is needed"
