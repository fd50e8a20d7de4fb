"""Rammer's barrier-rTask against a global barrier (OSDI 2020, 5.4), on random modules as in NAS-Bench-101."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..benchmark.race import race
from ..device import DeviceSpec
from ..ir import RGraph
from ..wavefront import SYNCS, place_views, schedule
from ..wavefront.policies.waves import waves
from ..zoo.nasbench import NasbenchModule, nasbench, random_module
from .lowering import Lowered, Lowering
from .variants import Variants


@dataclass(frozen=True, slots=True)
class SyncGain:
    """One module under both kinds of synchronisation.

    Parameters
    ----------
    seed : int
        Of `random_module`.
    operators : int
        rOperators after fusion.
    irregular : bool
    auto_us, global_us : float
        Time with waits between rTasks, and with a barrier over all vEUs between waves.
    """

    seed: int
    operators: int
    irregular: bool
    auto_us: float
    global_us: float

    @property
    def gain(self) -> float:
        """How many times faster waits are."""
        return self.global_us / self.auto_us


def is_irregular(graph: RGraph) -> bool:
    """Whether a barrier between waves keeps apart two operators that no path orders.

    In a regular graph every operator of a wave depends, maybe by way of others, on all of the wave before: there a
    barrier asks no more of the operators than their dependences do.
    """
    predecessors = graph.predecessors()
    ancestors: list[set[int]] = []
    for before in predecessors:
        ancestors.append(set(before).union(*(ancestors[p] for p in before)))
    levels = waves(predecessors)
    return any(not set(above) <= ancestors[o] for above, wave in pairwise(levels) for o in wave)


def predict_gains(
    seeds: Iterable[int],
    device: DeviceSpec,
    *,
    channels: int = 128,
    size: int = 32,
    progress: Callable[[str], None] = lambda message: None,
) -> list[SyncGain]:
    """Plan modules for a device both ways, with the same kernels to choose from.

    Parameters
    ----------
    seeds : iterable of int
        Of `random_module`; modules that come again are planned once.
    device : DeviceSpec
    channels, size : int
        Of all images.
    progress : callable
        Gets a message before each step.

    Returns
    -------
    list of SyncGain
        For each seed, with predicted times, launches included.
    """
    lowering, gains = Lowering(device), []
    known: dict[NasbenchModule, SyncGain] = {}
    for seed in seeds:
        module = random_module(seed)
        if module not in known:
            progress(f"planning module {len(known)}")
            known[module] = _predict(seed, lowering.lower(nasbench(module, channels=channels, size=size)), device)
        gains.append(replace(known[module], seed=seed))
    return gains


def _predict(seed: int, lowered: Lowered, device: DeviceSpec) -> SyncGain:
    graph = lowered.graph
    auto_us, global_us = (
        sum(p.makespan_us for p in schedule(graph, lowered.kernels, device, veus=device.units, sync=sync))
        for sync in SYNCS
    )
    return SyncGain(seed, len(graph.operators), is_irregular(graph), auto_us, global_us)


def sample(gains: Iterable[SyncGain], count: int) -> list[int]:
    """Seeds of `count` different modules of more than one operator, up to half of them irregular."""
    several = {random_module(g.seed): g for g in gains if g.operators > 1}.values()
    irregular = [g.seed for g in several if g.irregular][: count // 2]
    return irregular + [g.seed for g in several if not g.irregular][: count - len(irregular)]


def measure_gains(
    seeds: Sequence[int],
    device: DeviceSpec,
    *,
    channels: int = 128,
    size: int = 32,
    repeat: int = 100,
    progress: Callable[[str], None] = lambda message: None,
) -> list[SyncGain]:
    """Compile modules both ways for this machine's CPU, and time them interleaved.

    Parameters
    ----------
    seeds : sequence of int
        Of `random_module`.
    device : DeviceSpec
        This machine.
    repeat : int
        Runs of each.
    channels, size, progress
        As in `predict_gains`.

    Returns
    -------
    list of SyncGain
        With medians of measured times.

    Raises
    ------
    ModelError
        Results differ: nothing was timed.
    """
    x = np.random.default_rng(0).standard_normal((1, channels, size, size)).astype(np.float32)
    gains = []
    for n, seed in enumerate(seeds):
        progress(f"measuring module {n} of {len(seeds)}")
        variants = Variants(nasbench(random_module(seed), channels=channels, size=size), device)
        runners = {sync: variants.runner("wavefront", sync) for sync in SYNCS}
        auto_ms, global_ms = (samples.summary()["median_ms"] for samples in race(runners, [x], repeat).values())
        graph = place_views(variants.record.graphs[0], variants.record.copies)
        gains.append(SyncGain(seed, len(graph.operators), is_irregular(graph), auto_ms * 1e3, global_ms * 1e3))
    return gains
