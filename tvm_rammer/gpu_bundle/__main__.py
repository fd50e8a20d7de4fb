"""The command line of `scripts/gpu_bundle`."""

import argparse
import pathlib
import sys
import time

from ..device import preset
from ..errors import RammerError, ToolError
from .bundle import make_bundle
from .models import DEFAULT, MODELS


def main() -> int:
    """Make a bundle; 1 where that fails."""
    parser = argparse.ArgumentParser(prog="gpu_bundle", description="Pack models for a first look at a GPU.")
    parser.add_argument("-o", "--out", type=pathlib.Path, default=pathlib.Path("out/gpu_bundle"), help="its folder")
    parser.add_argument("--models", default=",".join(DEFAULT), help=f"some of {', '.join(MODELS)}, by commas")
    parser.add_argument("--target", default="cuda:h200", help="for which GPU the persistent kernels are planned")
    options = parser.parse_args()
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {line}", file=sys.stderr, flush=True)  # noqa: T201

    try:
        names = [name for name in options.models.split(",") if name]
        unknown = [name for name in names if name not in MODELS]
        if unknown:
            raise ToolError(f"unknown models {', '.join(unknown)}; choose from {', '.join(MODELS)}")
        size = make_bundle(options.out, preset(options.target), {name: MODELS[name] for name in names}, say=say)
    except RammerError as error:
        print(f"gpu_bundle: {error}", file=sys.stderr)  # noqa: T201
        return 1
    say(f"{options.out}: {size / 1e6:.1f} MB; copy it to the machine with the GPU, and run `python3 gpu_bench` in it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
