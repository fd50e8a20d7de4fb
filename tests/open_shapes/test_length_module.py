"""A module of any length, as callers have it: arrays, wrong lengths, threads, the cache."""

import itertools
import threading

import numpy as np
import pytest

import tvm_rammer
from tests.end_to_end.test_any_length import MOST, opened
from tests.end_to_end.test_loops import B, I, layer
from tests.relay_passes.models import random
from tvm_rammer.errors import ModelError, ShapeError
from tvm_rammer.runtime.module import RammerModule
from tvm_rammer.runtime.tensors import TensorSpec


@pytest.fixture(scope="module")
def short():
    return opened(layer("RNN", steps="time", hidden=4))


def test_tensors_of_tvm_and_names(short, monkeypatch):
    import tvm

    short(random(5, B, I))
    monkeypatch.delattr(RammerModule, "runtime_device")  # which loads all of TVM

    assert short.inputs == (TensorSpec("x", (-1, B, I), "float32"),)
    want = short(random(5, B, I))
    got = short(x=tvm.runtime.tensor(random(5, B, I)))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.from_dlpack(one), other)
    assert [out.shape for out in short.run(["y_h", "y"], {"x": random(6, B, I)})] == [(1, B, 4), (6, 1, B, 4)]


def test_on_a_gpu_rows_are_copied_by_the_host(short, monkeypatch):
    """The GPU is this processor."""
    import tvm

    want = short(random(5, B, I))
    (one,) = short.modules
    for name, instead in {"_on_cpu": False, "_check_here": lambda: None, "runtime_device": tvm.cpu}.items():
        monkeypatch.setattr(one, name, instead)
    monkeypatch.setattr(one._streams, "enter", lambda device: None)
    for got in (one(random(5, B, I)), one(tvm.runtime.tensor(random(5, B, I)))):
        for array, wanted in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.from_dlpack(array), wanted)


def test_lengths_and_types_are_checked(short):
    for length in (0, MOST + 1):
        with pytest.raises(ShapeError, match=rf"{length}"):
            short(random(length, B, I))
    with pytest.raises(ModelError, match="float64"):
        short(random(5, B, I).astype("float64"))
    with pytest.raises(ShapeError, match="2"):
        short(random(5, B + 1, I))
    short(random(5, B, I))
    (one,) = short.modules
    with pytest.raises(ShapeError, match=f"'time' is {MOST + 1}; give .* from 1 to {MOST}"):
        one(random(MOST + 1, B, I))


def test_many_threads_call_with_lengths_of_their_own(short):
    wanted = {n: short(random(n, B, I)) for n in range(1, 9)}
    wrong = []

    def call(n):
        for _ in range(20):
            wrong.extend(n for got, want in zip(short(random(n, B, I)), wanted[n], strict=True) if (got != want).any())

    threads = [threading.Thread(target=call, args=(n,)) for n in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("with_cache")
def test_it_is_compiled_once_and_kept(tmp_path, compilations):
    proto = layer("RNN", steps="time", hidden=4)
    module = opened(proto, cache=tmp_path)
    wanted = {n: module(random(n, B, I)) for n in (5, 1, MOST)}
    again = opened(proto, cache=tmp_path, on_new_shape="error")
    saved = tvm_rammer.load(module.prepare({"time": 9}).save(tmp_path / "any.rammer"))
    for (n, want), other in itertools.product(wanted.items(), (again, saved)):
        for got, one in zip(other(random(n, B, I)), want, strict=True):
            np.testing.assert_array_equal(got, one)
    assert len(compilations) == 1
    assert saved.inputs[0].shape == (-1, B, I) and "every 'time' from 1 to 37" in saved.explain()


def test_a_bound_is_found_where_none_is_given(compilations):
    module = tvm_rammer.compile(layer("RNN", steps="time", hidden=4), cache=False)
    for n in (3, 64, 65, 100, 2):
        assert module(random(n, B, I))[0].shape[0] == n
    assert [m.length.most for m in module.modules] == [64, 128] and len(compilations) == 2
