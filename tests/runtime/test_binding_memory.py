"""Memory of bound modules: arrays that are inputs and outputs, and calls that allocate nothing."""

import os
import pathlib
import shutil
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import tvm_rammer
from tests.runtime.arrays import aligned, equal, product


@pytest.fixture(scope="module")
def turning():
    return tvm_rammer.compile(product())


def test_results_that_are_inputs_or_other_results(turning):
    binding = turning.bind(states={"state": "state_next"})
    rng = np.random.default_rng(0)
    binding.inputs["state"][:] = rng.standard_normal((64, 256))
    for _ in range(4):
        binding.inputs["x"][:] = rng.standard_normal((64, 256))
        wanted = turning(binding.inputs["x"], binding.inputs["state"])
        assert equal([tuple(binding().values())], [wanted])


def test_a_result_may_go_where_it_came_from(turning):
    x = aligned((64, 256))
    binding = turning.bind({"x": x}, {"y": x})
    for k in range(3):
        x[:] = k
        wanted = turning(x, binding.inputs["state"])
        binding()
        np.testing.assert_array_equal(x, wanted[1])
        np.testing.assert_array_equal(binding.outputs["same"], np.full((64, 256), k, "float32"))


@pytest.mark.parametrize("shift", [0, 1, 32])
def test_a_state_may_share_memory_with_the_next_one(turning, shift):
    """The arrays are all such as a launch could take where they are."""
    rng, both = np.random.default_rng(0), aligned((96, 256))
    state, state_next = both[:64], both[shift : shift + 64]
    for states in ({}, {"state": "state_next"}):
        binding = turning.bind({"state": state}, {"state_next": state_next}, states=states)
        for _ in range(3):
            both[:] = rng.standard_normal(both.shape)
            wanted = turning(binding.inputs["x"], binding.inputs["state"].copy())
            np.testing.assert_array_equal(binding()["state_next"], wanted[2])


def test_a_call_makes_no_array(turning):
    """Arrays of this model have 64 KiB; NumPy tells tracemalloc of each that it makes."""
    same = aligned((64, 256))
    for binding in (
        turning.bind(states={"state": "state_next"}),
        turning.bind({"state": same}, {"state_next": same}),
        turning.bind({"x": aligned((64, 256), away=4)}, {"y": np.zeros((64, 512), "float32")[:, ::2]}),
    ):
        binding()
        tracemalloc.start()
        try:
            for _ in range(20):
                binding()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 8192


COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <errno.h>

/* Counts the allocations of a size or more, whoever makes them. */
static long count, least = 1L << 40;
void watch(long size) { count = 0; least = size; }
long counted(void) { least = 1L << 40; return count; }

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);
static void note(size_t size) { if ((long)size >= least) __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); }
void *malloc(size_t size) { note(size); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { note(number * size); return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { note(size); return __libc_realloc(old, size); }
void *memalign(size_t to, size_t size) { note(size); return __libc_memalign(to, size); }
void *aligned_alloc(size_t to, size_t size) { note(size); return __libc_memalign(to, size); }
int posix_memalign(void **at, size_t to, size_t size) {
  note(size);
  *at = __libc_memalign(to, size);
  return *at ? 0 : ENOMEM;
}
"""

COUNTED = """
import ctypes, sys
import numpy as np
import tvm_rammer
counter = ctypes.CDLL(None)
counter.counted.restype = ctypes.c_long
module = tvm_rammer.load(sys.argv[1])
binding = module.bind(states={"state": "state_next"})
x, state = (np.zeros(spec.shape, spec.dtype) for spec in module.inputs)

def count(call):
    for _ in range(3):
        call()
    counter.watch(ctypes.c_long(4096))
    for _ in range(100):
        call()
    return counter.counted()

print(count(binding), count(lambda: module(x, state)))
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_call_allocates_nothing_of_size(turning, tmp_path):
    """Not even in C: malloc and its like, of 4 KiB or more, are counted in a process that runs the model."""
    (tmp_path / "counter.c").write_text(COUNTER, encoding="utf-8")
    library = tmp_path / "counter.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, tmp_path / "counter.c"], check=True)
    saved = turning.save(tmp_path / "turning.rammer")
    done = subprocess.run(
        [sys.executable, "-c", COUNTED, saved], capture_output=True, text=True, check=False,
        env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(pathlib.Path(__file__).parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    bound, called = map(int, done.stdout.split())
    assert bound == 0
    assert called >= 400, "the counter sees the copies of results"
