"""What stays in the memory of a process after many calls, or many compilations: in a process of its own."""

import gc
import itertools
import multiprocessing
import pathlib
from collections.abc import Callable

from .models import growing_loop, long_model

KINDS = ("Relu", "Tanh", "Add", "LSTM")
"""Models that are compiled in turn."""


def after_calls(warm_up: int, calls: int) -> float:
    """Megabytes that calls of a small module add after a warm-up."""
    return _in_new_process(_calls, warm_up, calls)


def after_compilations(warm_up: int, compilations: int) -> float:
    """Megabytes that compilations of small models, each called once, add after a warm-up."""
    return _in_new_process(_compilations, warm_up, compilations)


def after_growing(warm_up: int, calls: int) -> float:
    """Megabytes that calls of a loop add that has 4 KiB more after each round; each call has 100 rounds more."""
    return _in_new_process(_growing, warm_up, calls)


def left_to_the_collector() -> int:
    """Bytes of arrays and models that what refers to itself holds after compilations, until Python collects it."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_left_to_the_collector)


def _left_to_the_collector() -> int:
    import numpy as np
    import onnx

    import tvm_rammer
    from tvm_rammer.zoo.inception_module import inception_module
    from tvm_rammer.zoo.onnx_lstm import onnx_lstm

    gc.collect()
    gc.disable()
    modules = [tvm_rammer.compile(model, cache=False) for model in (inception_module(), onnx_lstm(2, 20, 64))]
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    assert modules and gc.garbage  # TVM's and onnx's own functions refer to themselves, too
    held = {id(thing): thing for holder in gc.garbage for thing in gc.get_referents(holder)}.values()
    arrays = sum(thing.nbytes for thing in held if isinstance(thing, np.ndarray))
    return arrays + sum(thing.ByteSize() for thing in held if isinstance(thing, onnx.ModelProto))


def _in_new_process(measure: Callable[[int, int], float], *counts: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, counts)


def _calls(warm_up: int, calls: int) -> float:
    import tvm_rammer

    proto, inputs = long_model("Relu", 3)
    module = tvm_rammer.compile(proto, cache=False)
    return _added(lambda _: module(**inputs), warm_up, calls)


def _growing(warm_up: int, calls: int) -> float:
    import numpy as np

    import tvm_rammer

    module, counts = tvm_rammer.compile(growing_loop(1024), cache=False), itertools.count(1)
    x = np.zeros((1, 1024), np.float32)
    return _added(lambda _: module(n=np.array(100 * next(counts)), x=x), warm_up, calls)


def _compilations(warm_up: int, compilations: int) -> float:
    import tvm_rammer

    def compile_one(number: int) -> None:
        proto, inputs = long_model(KINDS[number % len(KINDS)], 3 + number % 5)
        tvm_rammer.compile(proto, cache=False)(**inputs)

    return _added(compile_one, warm_up, compilations)


def _added(act: Callable[[int], object], warm_up: int, times: int) -> float:
    for number in range(warm_up):
        act(number)
    before = resident()
    for number in range(times):
        act(number)
    return resident() - before


def resident() -> float:
    """Megabytes that no file has: pages of libraries come and go as the system likes."""
    gc.collect()
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(kilobytes) / 1024
