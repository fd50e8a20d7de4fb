"""Compiling in several threads at a time: TVM's builders know but one."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tvm import relax

import tvm_rammer
from tests.functions import relax_module
from tests.relay_passes.models import model, node, value
from tvm_rammer.serial import serial


def sum_and_more(width):
    nodes = [node("Add", ["x", "x"], ["a"]), node("Concat", ["a", "x"], ["y"], axis=0)]
    return model(nodes, [value("x", [2, width])], [value("y", [4, width])])


def test_models_that_several_threads_compile():
    def run(width):
        x = np.full((2, width), width, "float32")
        return tvm_rammer.compile(sum_and_more(width), cache=False)(x)

    widths = range(3, 15)
    with ThreadPoolExecutor(8) as pool:
        for width, got in zip(widths, pool.map(run, widths), strict=True):
            np.testing.assert_array_equal(got, np.repeat([2.0 * width, width], 2)[:, None].repeat(width, 1))


def test_relax_modules_that_several_threads_compile():
    mods = [relax_module([(2, width)], relax.op.nn.gelu) for width in range(3, 11)]
    with ThreadPoolExecutor(8) as pool:
        for module in pool.map(lambda mod: tvm_rammer.compile(mod, cache=False), mods):
            assert module.rprograms


def test_one_at_a_time_and_in_a_forked_child():
    inside, most = [], []

    @serial
    def work():
        inside.append(1)
        time.sleep(0.005)  # long enough for another thread to come in
        most.append(len(inside))
        recursive()
        inside.pop()

    recursive = serial(lambda: None)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 8

    held, done = threading.Event(), threading.Event()
    holder = threading.Thread(target=serial(lambda: (held.set(), done.wait())))
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        recursive()  # the thread that holds the lock is not there
        os._exit(7)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
