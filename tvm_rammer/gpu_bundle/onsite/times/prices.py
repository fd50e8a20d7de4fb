"""What launches, edges of a CUDA graph, counters and barriers cost on this GPU: a `DeviceSpec` for the next plans."""

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from ....errors import ToolError
from ..cuda import Cuda
from ..launcher import Launcher, Work
from ..plan import plan_from_json
from ..session import Session

FOLDER = "prices"
"""Of a bundle, with a plan for each of `PRICED`."""

LAUNCHES, FEW, MANY = 100, 20, 220
"""Launches of a run; rounds of a short run and of a long one: what both have in common is no price of a round."""

PRICED: Mapping[str, tuple[str, int]] = {
    "launches": ("launches", 0),
    "few hops": ("hops", FEW),
    "many hops": ("hops", MANY),
    "few barriers": ("barriers", FEW),
    "many barriers": ("barriers", MANY),
}
"""The kind and the rounds of each plan."""

_RUNS, _WARM = 25, 5


def measure_prices(folder: Path, cuda: Cuda, launcher: Launcher) -> dict[str, float]:
    """Measure the prices by which plans are made.

    Parameters
    ----------
    folder : pathlib.Path
        The bundle.
    cuda : Cuda
    launcher : Launcher

    Returns
    -------
    dict of str to float
        `launch_us`, `node_us`, `signal_us` and `barrier_us`, as in a `DeviceSpec`.

    Raises
    ------
    ToolError
        A long run takes no longer than a short one.
    ResidencyError
        This GPU has fewer multiprocessors than the bundle was made for.
    """
    sessions = {
        name: Session(folder, plan_from_json(json.loads(plan_path(folder, name).read_text("utf-8"))), cuda, launcher)
        for name in PRICED
    }
    us = {name: _run_us(cuda, launcher, session.work) for name, session in sessions.items()}
    graph_us = _run_us(cuda, launcher, sessions["launches"].graph())
    prices = {
        "launch_us": us["launches"] / LAUNCHES,
        "node_us": graph_us / LAUNCHES,
        "signal_us": (us["many hops"] - us["few hops"]) / (2 * (MANY - FEW)),
        "barrier_us": (us["many barriers"] - us["few barriers"]) / (MANY - FEW),
    }
    if min(prices.values()) <= 0:
        raise ToolError(f"the prices {prices} are not positive; measure again while nothing else uses the GPU")
    return prices


def plan_path(folder: Path, name: str) -> Path:
    """Where a bundle has one of `PRICED`."""
    return folder / FOLDER / name.replace(" ", "-") / "plan.json"


def _run_us(cuda: Cuda, launcher: Launcher, work: Work) -> float:
    """The median time of a run by GPU events, after a few that are not counted."""
    times = [cuda.timed_us(launcher.stream, lambda: launcher.run(work)) for _ in range(_WARM + _RUNS)]
    return median(times[_WARM:])


def measured_spec(planned: Mapping[str, Any], device: Mapping[str, Any], prices: Mapping[str, float]) -> dict[str, Any]:
    """The figures of a device with what was measured in their place.

    Parameters
    ----------
    planned : mapping
        The `DeviceSpec` that the bundle was made for.
    device : mapping
        What `Cuda.describe` says.
    prices : mapping of str to float

    Raises
    ------
    ToolError
        It is another kind of GPU: all other figures would be wrong.
    """
    arch = str(planned["arch"]).removesuffix("a")
    if arch != device["architecture"]:
        raise ToolError(
            f"the bundle was made for {planned['name']} ({arch}), and this GPU is {device['architecture']}; "
            "make one for it (gpu_bundle --target)"
        )
    return {**planned, "name": f"{planned['name']}, measured", "units": device["multiprocessors"], **prices}
