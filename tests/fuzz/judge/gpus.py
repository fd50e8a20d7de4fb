"""Models for GPUs that are made up, emulated: plans that real ones have for large models only."""

import random
from collections.abc import Mapping

import numpy as np
import onnx

from tests.emulation.emulate import EmulationError
from tests.emulation.models import emulated_model, random_way

from .onnx_judges import Judgement

RUNS = 2


def judge_gpu(seed: int, data: bytes, feeds: Mapping[str, np.ndarray], verdict: Judgement | None = None) -> str:
    """Say what is wrong with the results of a model on a GPU that follows from the seed; else nothing.

    Parameters
    ----------
    seed : int
    data : bytes
        An ONNX model.
    feeds : mapping of str to array
    verdict : Judgement, optional
        What is right; without it nothing is compared, but the emulation tells of what would end a launch.
    """
    way = random_way(random.Random(f"gpus/{seed}"))
    shapes = {name: array.shape for name, array in feeds.items()}
    made = emulated_model(onnx.load_from_string(data), way, shapes)
    for run in range(RUNS):  # counters go on from run to run
        try:
            got = made.run(feeds, RUNS * seed + run)
        except EmulationError as error:
            return f"emulation: {error} ({way})"
        fault = verdict.fault(got) if verdict is not None else None
        if fault:
            return fault if fault == "unstable" else f"run {run}: {fault} ({way})"
    return ""
