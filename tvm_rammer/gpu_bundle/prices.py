"""What launches, edges of a CUDA graph, counters and barriers cost: kernels that do nothing else, for a bundle."""

import pathlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..device import DeviceSpec
from ..persistent_codegen.cuda.sync import source as sync_source
from .files import Files
from .onsite.plan import Plan, PlanBuffer, PlanLaunch, View, check_plan
from .onsite.times.prices import LAUNCHES, PRICED

_STATE_WORDS = 128


def prices_source() -> str:
    """Return the CUDA text of the kernels that are priced."""
    return sync_source() + (pathlib.Path(__file__).parent / "prices.cuh").read_text(encoding="utf-8")


def price_plans(files: Files, device: DeviceSpec, cubins: Mapping[str, str]) -> dict[str, Plan]:
    """Make the plans of `onsite.times.prices.PRICED`.

    Parameters
    ----------
    files : Files
        Takes what their buffers begin with.
    device : DeviceSpec
        A barrier is over as many blocks as it has units.
    cubins : mapping of str to str
        Of `prices_source`, as `Plan.cubins`.
    """
    launch = PlanLaunch("price_launch", (1, 1, 1), (128, 1, 1), 0, False, ())
    kinds = {
        "launches": [launch] * LAUNCHES,
        "hops": [replace(launch, kernel="price_hops", grid=(2, 1, 1), block=(32, 1, 1), cooperative=True)],
        "barriers": [replace(launch, kernel="price_barriers", grid=(device.units, 1, 1), cooperative=True)],
    }
    plans = {}
    for name, (kind, rounds) in PRICED.items():
        arrays = {"state": np.zeros(_STATE_WORDS, np.int32)}
        if rounds:
            arrays = {"rounds": np.array([rounds], np.int32)} | arrays
        buffers = tuple(PlanBuffer(n, a.nbytes, "constant", files.add_array(a)) for n, a in arrays.items())
        views = tuple(View(n, 0, buffer.nbytes) for n, buffer in enumerate(buffers))
        launches = tuple(replace(made, arguments=views) for made in kinds[kind])
        plans[name] = Plan(f"prices {name}", buffers, launches, (), cubins)
        check_plan(plans[name])
    return plans
