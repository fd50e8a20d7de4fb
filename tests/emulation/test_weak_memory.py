"""Weak memory between blocks: what the emulation keeps invisible, and what it shows."""

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError, run_emulated
from tests.emulation.test_emulate import HEAD, run

LAZY, STRONG, DRIFTING = 0, 1, 2
"""Seeds by their remainder of 3."""

DEVICE, BLOCK = "__NV_THREAD_SCOPE_DEVICE", "__NV_THREAD_SCOPE_BLOCK"
RELEASE, ACQUIRE, RELAXED = "__NV_ATOMIC_RELEASE", "__NV_ATOMIC_ACQUIRE", "__NV_ATOMIC_RELAXED"
MESSAGE = """
  if (blockIdx.x == 0) {{ out_ptr[threadIdx.x] = 3; __syncthreads(); }}
  if (blockIdx.x == 0 && threadIdx.x == 0) {{ {before} __nv_atomic_add(n_ptr, 1, {release}, {scope}); }}
  if (blockIdx.x == 1) {{
    if (threadIdx.x == 0) while (__nv_atomic_load_n(n_ptr, {acquire}, {scope}) < 1) __nanosleep(8);
    {after} __syncthreads();
    out_ptr[64 + threadIdx.x] = {load};
  }}"""


def passed(seed, **changes):
    """Whether block 1 sees what block 0 wrote."""
    parts = {"before": "", "after": "", "release": RELEASE, "acquire": ACQUIRE, "scope": DEVICE}
    parts["load"] = "out_ptr[63 - threadIdx.x]"
    return (run(MESSAGE.format(**parts | changes), seed=seed)["out"] == 3).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_release_and_an_acquire_pass_a_message(seed):
    assert passed(seed)
    assert passed(seed, release="__NV_ATOMIC_ACQ_REL", acquire="__NV_ATOMIC_SEQ_CST")


@pytest.mark.parametrize(
    "weaker", [{"release": RELAXED}, {"acquire": RELAXED}, {"release": RELAXED, "acquire": RELAXED}]
)
def test_a_relaxed_operation_passes_no_more_than_its_word(weaker):
    assert not passed(LAZY, **weaker)
    assert passed(STRONG, **weaker)


@pytest.mark.parametrize("seed", range(6))
def test_fences_order_relaxed_operations(seed):
    relaxed = {"release": RELAXED, "acquire": RELAXED}
    assert passed(seed, **relaxed, before="__threadfence();", after="__threadfence();")


def test_a_fence_of_the_block_does_not():
    relaxed = {"release": RELAXED, "acquire": RELAXED}
    assert not passed(LAZY, **relaxed, before="__threadfence_block();", after="__threadfence_block();")


@pytest.mark.parametrize("seed", range(3))
def test_the_scope_of_a_block_is_too_narrow_for_two(seed):
    with pytest.raises(EmulationError, match="several blocks use"):
        passed(seed, scope=BLOCK)


def test_a_load_that_need_not_be_coherent_sees_the_past():
    assert not passed(LAZY, load="__ldg(out_ptr + 63 - threadIdx.x)")


def test_drifting_lines_become_visible_in_any_order():
    """Block 1 reads what block 0 writes without any order between them: old, new, and some of both."""
    body = """
  if (blockIdx.x == 0) for (int i = threadIdx.x; i < 1024; i += 64) { out_ptr[i] = 1; __syncthreads(); }
  if (blockIdx.x == 1) for (int i = threadIdx.x; i < 1024; i += 64) {
    out_ptr[1024 + i] = out_ptr[1023 - i];
    __syncthreads();
  }"""
    seen = [run(body, seed=DRIFTING + 3 * n, size=2048)["out"][1024:] for n in range(40)]
    assert any((s == 0).all() for s in seen)
    assert any(len(set(s)) == 2 for s in seen)
    assert all((run(body, seed=LAZY + 3 * n, size=2048)["out"][1024:] == 0).all() for n in range(4))


def test_two_blocks_write_to_one_line():
    body = "out_ptr[2 * threadIdx.x + blockIdx.x] = 1 + blockIdx.x;"
    for seed in range(6):
        assert (run(body, seed=seed)["out"].reshape(64, 2) == [1, 2]).all()


def test_what_a_block_wrote_survives_an_acquire():
    body = """
  out_ptr[2 * threadIdx.x + blockIdx.x] = 1 + blockIdx.x;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) __nv_atomic_add(n_ptr, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  if (blockIdx.x == 1 && threadIdx.x == 0)
    while (__nv_atomic_load_n(n_ptr, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) < 1) __nanosleep(8);"""
    for seed in range(6):
        assert (run(body, seed=seed)["out"].reshape(64, 2) == [1, 2]).all()


def test_orders_that_an_operation_cannot_have():
    with pytest.raises(EmulationError, match="load that releases"):
        passed(STRONG, acquire=RELEASE)
    with pytest.raises(EmulationError, match="store that acquires"):
        run("__nv_atomic_store_n(n_ptr, 1, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);")


def test_arrays_that_a_kernel_must_not_write():
    source = f'{HEAD}extern "C" __global__ void k(float* out_ptr, float* x_ptr) {{\n{{}}\n}}\n'
    args = {"out": np.zeros(4, np.float32), "x": np.ones(4, np.float32)}
    run_emulated(source.replace("{}", "out_ptr[0] = x_ptr[1];"), "k", (1,), (32,), 0, args, 0, ["x"])
    assert args["out"][0] == 1
    with pytest.raises(EmulationError, match="x: a write to what the kernel should only read"):
        run_emulated(source.replace("{}", "x_ptr[0] = 5;"), "k", (1,), (32,), 0, args, 0, ["x"])


@pytest.mark.parametrize(("at", "seed"), [(4, 0), (5, 2), (-1, 1), (-4, 3)])
def test_reads_outside_of_what_a_kernel_only_reads_show(at, seed):
    """On a GPU they may end a launch, also where nothing comes of what was read."""
    body = f"float v = x_ptr[{at}]; out_ptr[0] = threadIdx.x < 32 ? 1 : v;"
    source = f'{HEAD}extern "C" __global__ void k(float* out_ptr, float* x_ptr) {{\n{body}\n}}\n'
    args = {"out": np.zeros(4, np.float32), "x": np.ones(4, np.float32)}
    with pytest.raises(EmulationError, match="access out of bounds"):
        run_emulated(source, "k", (1,), (64,), 0, args, seed, ["x"])
