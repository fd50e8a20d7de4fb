"""Runs on several streams: those of a GPU's module wait for the run before; a CPU's streams stand in for a GPU's."""

import numpy as np
import tvm
import tvm_ffi

import tvm_rammer
from tests.relay_passes.models import model, node, value


def test_a_run_on_another_stream_waits_for_the_run_before(monkeypatch):
    module = tvm_rammer.compile(model([node("Relu", ["x"], ["y"])], [value("x", [4])], ["y"]), threads=1, cache=False)
    monkeypatch.setattr(module, "_on_cpu", False)  # as if it counted in memory of its own
    waited, real = [], tvm.runtime.Device.sync
    monkeypatch.setattr(
        tvm.runtime.Device, "sync", lambda device, stream=None: (waited.append(stream), real(device, stream))
    )
    x = np.arange(-2, 2, dtype="float32")
    runs = [(0, []), (0, []), (5, [0]), (5, []), (7, [5]), (0, [7])]
    for stream, expected in runs:
        waited.clear()
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cpu:0"), stream):
            np.testing.assert_array_equal(module(x), np.maximum(x, 0))
        assert waited == expected
