"""Kernels that were made once are not made again, and nothing else is taken for the same."""

import threading
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
import tvm
from tvm import te

from tvm_rammer.device import host_cpu
from tvm_rammer.ir import Buffer, RGraph, ROperator
from tvm_rammer.rkernel_gen import make_kernels, remembered
from tvm_rammer.rkernel_gen.registered import register_rkernel, unregister_rkernel
from tvm_rammer.rkernel_gen.remembered import Made, Remembered
from tvm_rammer.rkernel_gen.tiling import Function

CPU = host_cpu()


def doubled(extent, argument="x"):
    x = te.placeholder((extent,), name=argument)
    return te.create_prim_func([x, te.compute((extent,), lambda i: x[i] * 2.0, name="y")])


def function(extent=8, name="f", argument="x", device=CPU, constants=frozenset()):
    return Function(name, doubled(extent, argument), device, constants)


def made(*words):
    return Made((), Counter(words))


@pytest.mark.parametrize(
    "other",
    [
        function(extent=9),
        function(name="g"),
        function(argument="z"),
        function(device=replace(CPU, units=CPU.units + 1)),
        function(constants=frozenset({0})),
    ],
    ids=["code", "name", "names in the code", "device", "constants"],
)
def test_all_that_kernels_depend_on_tells_functions_apart(other):
    known = Remembered()
    assert known.get(function(), lambda: made("first")) == made("first")
    assert known.get(other, lambda: made("other")) == made("other")
    assert known.get(function(), lambda: pytest.fail("made again")) == made("first")


def test_a_pass_context_tells_functions_apart():
    known = Remembered()
    known.get(function(), lambda: made("first"))
    with tvm.transform.PassContext(config={"tirx.disable_vectorize": True}):
        assert known.get(function(), lambda: made("other")) == made("other")
    assert known.get(function(), lambda: pytest.fail("made again")) == made("first")


def test_the_oldest_is_forgotten(monkeypatch):
    monkeypatch.setattr(remembered, "MAX_FUNCTIONS", 2)
    known = Remembered()
    for extent in (1, 2, 1, 3):
        known.get(function(extent), lambda: made("first"))
    assert known.get(function(1), lambda: made("again")) == made("first")
    assert known.get(function(2), lambda: made("again")) == made("again")


def test_threads_get_what_one_of_them_made():
    known, found = Remembered(), []
    functions = [function(extent) for extent in range(1, 9)] * 4

    def ask():
        for f in functions:
            found.append((f, known.get(f, partial(made, str(f.func)))))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 * len(functions)
    assert all(got == made(str(f.func)) for f, got in found)


def kernels_of(extent):
    buffers = (Buffer("x", (extent,), "float32", "input"), Buffer("y", (extent,), "float32", "output"))
    graph = RGraph("g", buffers, (ROperator("f", "f", (0,), (1,)),))
    return make_kernels([graph], {"f": doubled(extent)}, CPU)


def test_a_second_model_gets_the_very_kernels_and_the_same_count_of_those_that_were_dropped():
    first, second = kernels_of(4096), kernels_of(4096)
    assert all(a.func.same_as(b.func) for a, b in zip(first.kernels["f"], second.kernels["f"], strict=True))
    assert first.dropped == second.dropped and first.dropped is not second.dropped


def test_hand_written_kernels_are_asked_for_each_time():
    asked = []
    kernels_of(64)
    register_rkernel("mine", lambda func: True, lambda *arguments: asked.append(arguments) or [], kind="cpu")
    try:
        kernels_of(64)
        before = len(asked)
        kernels_of(64)
        assert len(asked) == 2 * before > 0
    finally:
        unregister_rkernel("mine", kind="cpu")
