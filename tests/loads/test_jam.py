"""Iterations side by side: which loops are rewritten, and that the results are the same."""

import numpy as np
import pytest
import tvm_ffi
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.script import tirx as T

from tests.loads.test_loads import everything, flat, loops, results
from tvm_rammer.loads.jam import jam_loops


@T.prim_func(s_tir=True)
def pooled(x: T.Buffer((30,), "float32"), y: T.Buffer((10,), "float32")):
    best = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(10):
        for t in range(9):
            if t == 0:
                best[0] = T.float32(-100)
            best[0] = T.max(best[0], x[i * 2 + t])
        y[i] = best[0] * x[i]


@T.prim_func(s_tir=True)
def guarded_in_a_nest(x: T.Buffer((6, 5, 7), "float32"), y: T.Buffer((7,), "float32")):
    mean = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(7):
        for r in range(3):
            for c in range(3):
                if i < 6:
                    if r == 0 and c == 0:
                        mean[0] = T.float32(0)
                    mean[0] = mean[0] + T.if_then_else(r < 2 or c > 0, x[i, r, c], T.float32(1))
        if i < 6:
            y[i] = mean[0] * T.float32(0.25)


def sums_that_begin(condition):
    @T.prim_func(s_tir=True)
    def sums(x: T.Buffer((30,), "float32"), y: T.Buffer((10,), "float32")):
        total = T.alloc_buffer((1,), "float32", scope="local")
        for i in range(10):
            for t in range(3):
                if condition(i, t):
                    total[0] = T.float32(0)
                total[0] = total[0] + x[i * 3 + t]
            y[i] = total[0]

    return sums


carried_on = sums_that_begin(lambda i, t: tirx.all(tirx.EQ(i, 0), tirx.EQ(t, 0)))
begun_for_some = sums_that_begin(lambda i, t: tirx.all(tirx.EQ(i % 2, 0), tirx.EQ(t, 0)))


@T.prim_func(s_tir=True)
def of_a_table(x: T.Buffer((30,), "float32"), y: T.Buffer((9,), "float32")):
    table = T.alloc_buffer((9,), "float32", scope="local")
    total = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(9):
        table[i] = x[i]
    for i in range(10):
        for t in range(3):
            if i < 9:
                if t == 0:
                    total[0] = T.float32(0)
                total[0] = total[0] + x[i * 3 + t] * table[i]
        if i < 9:
            y[i] = total[0]


@T.prim_func(s_tir=True)
def used_later(x: T.Buffer((30,), "float32"), y: T.Buffer((11,), "float32")):
    total = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(10):
        for t in range(3):
            if t == 0:
                total[0] = T.float32(0)
            total[0] = total[0] + x[i * 3 + t]
        y[i] = total[0]
    y[10] = total[0]


@T.prim_func(s_tir=True)
def reads_what_it_writes(x: T.Buffer((30,), "float32"), y: T.Buffer((31,), "float32")):
    total = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(10):
        for t in range(3):
            if t == 0:
                total[0] = T.float32(0)
            total[0] = total[0] + x[i * 3 + t] + y[i]
        y[i + 1] = total[0]


@T.prim_func(s_tir=True)
def written_to_memory_first(x: T.Buffer((30,), "float32"), y: T.Buffer((30,), "float32")):
    total = T.alloc_buffer((1,), "float32", scope="local")
    for i in range(10):
        y[i] = T.float32(0)
        for t in range(3):
            if t == 0:
                total[0] = T.float32(0)
            total[0] = total[0] + x[i * 3 + t]
        y[i + 10] = total[0]


JAMMED = [pooled, guarded_in_a_nest, of_a_table]
LEFT = [carried_on, begun_for_some, used_later, reads_what_it_writes, written_to_memory_first]


@pytest.mark.parametrize("func", [*JAMMED, *LEFT])
def test_results_are_the_same(func):
    np.testing.assert_array_equal(results(jam_loops(flat(func))), results(flat(func)))
    np.testing.assert_array_equal(results(everything(jam_loops(flat(func)))), results(flat(func)))


@pytest.mark.parametrize("func", LEFT)
def test_what_an_iteration_leaves_to_others_stays_a_loop(func):
    assert tvm_ffi.structural_equal(jam_loops(flat(func)).body, flat(func).body)


def test_iterations_share_their_loops():
    assert loops(jam_loops(flat(pooled))) == [
        4,
        9,
        9,
        9,
        9,
    ]  # four groups of three; their loads, then what is made of them
    assert loops(jam_loops(flat(guarded_in_a_nest)))[:2] == [3, 3]


def test_results_are_stored_after_all_is_loaded():
    stores = []
    tvm_ffi.structural_walk(jam_loops(flat(pooled)).body, [(tirx.BufferStore, stores.append)], order="pre")
    to_memory = [store.buffer.name == "y" for store in stores]
    assert to_memory == sorted(to_memory) and sum(to_memory) == 3


def guarded_loads(func, name):
    """How often a buffer is loaded, and how often under a condition."""
    every, guarded = [], []

    def note(found):
        return [(TensorLoad, lambda load: found.append(load) if load.source.name == name else None)]

    def branch(node):
        tvm_ffi.structural_walk(node.then_case, note(guarded), order="pre")

    tvm_ffi.structural_walk(func.body, note(every), order="pre")
    tvm_ffi.structural_walk(func.body, [(tirx.IfThenElse, branch)], order="pre")
    return len(every), len(guarded)


def test_what_is_not_clamped_keeps_its_condition():
    """Only loads of global memory have indices that are one of the buffer whatever the condition is."""
    loads, guarded = guarded_loads(jam_loops(flat(of_a_table)), "table")
    assert loads == guarded > 0
    values, guarded = guarded_loads(jam_loops(flat(guarded_in_a_nest)), "mean")
    assert guarded < values  # sums that nobody reads may be anything
