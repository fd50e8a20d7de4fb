"""The emulation itself: what it computes, and what it refuses."""

import numpy as np
import pytest

from tests.emulation.emulate import EmulationError, run_emulated

HEAD = "  #define ushort unsigned short\n#endif\n"


def run(body, *, grid=2, block=64, shared=0, seed=0, size=128):
    source = (
        f'{HEAD}extern "C" __global__ void k(float* __restrict__ out_ptr, int* __restrict__ n_ptr) {{\n{body}\n}}\n'
    )
    args = {"out": np.zeros(size, np.float32), "n": np.zeros(4, np.int32)}
    run_emulated(source, "k", (grid,), (block,), shared, args, seed)
    return args


REVERSE = """
  extern __shared__ float s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out_ptr[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
"""


@pytest.mark.parametrize("seed", range(3))
def test_threads_share_memory_of_their_block(seed):
    out = run(REVERSE, shared=256, seed=seed)["out"]
    assert (out.reshape(2, 64) == np.arange(63, -1, -1)).all()


def test_a_missing_barrier_shows():
    wrong = [run(REVERSE.replace("__syncthreads();", ""), shared=256, seed=s)["out"] for s in range(3)]
    assert all(not np.array_equal(w.reshape(2, 64)[0], np.arange(63, -1, -1)) for w in wrong)


def test_static_shared_arrays_belong_to_a_block():
    body = REVERSE.replace("extern __shared__ float s[];", "__shared__ float s[64];").replace(
        "= threadIdx.x;", "= blockIdx.x;"
    )
    assert (run(body)["out"].reshape(2, 64) == [[0], [1]]).all()


def test_shuffles_move_values_between_lanes():
    body = "out_ptr[blockIdx.x * 64 + threadIdx.x] = __shfl_down_sync(0xffffffffu, (float)threadIdx.x, 1, 32);"
    expected = np.minimum(np.arange(64) % 32 + 1, 31) + np.arange(64) // 32 * 32
    assert (run(body)["out"].reshape(2, 64) == expected).all()


def test_extremes_of_two_types_are_of_the_wider_one():
    body = "signed char a = -3; out_ptr[blockIdx.x * 64 + threadIdx.x] = max(a, 0) + min((long)threadIdx.x, 7);"
    assert (run(body)["out"].reshape(2, 64) == np.minimum(np.arange(64), 7)).all()


def test_a_counter_orders_blocks():
    body = """
  if (blockIdx.x == 0) { out_ptr[threadIdx.x] = 3; __syncthreads(); }
  if (blockIdx.x == 0 && threadIdx.x == 0) __nv_atomic_add(n_ptr, 1, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  if (blockIdx.x == 1) {
    while (__nv_atomic_load_n(n_ptr, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE) < 1) __nanosleep(8);
    out_ptr[64 + threadIdx.x] = out_ptr[63 - threadIdx.x];
  }"""
    for seed in range(4):
        assert (run(body, seed=seed)["out"] == 3).all()


MATRICES = """
  extern __shared__ half s[];
  for (int n = threadIdx.x; n < 512; n += 64) s[n] = half(n * 5 % 7) - half(n / 16 % 5);
  __syncthreads();
  int lane = threadIdx.x % 32;
  half a[8], b[8];
  float c[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  unsigned *x = (unsigned*)a, *y = (unsigned*)b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
    : "l"(__cvta_generic_to_shared(s + lane % 16 * 16 + lane / 16 * 8)) : "memory");
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
    : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
    : "l"(__cvta_generic_to_shared(s + 256 + lane % 16 * 16 + lane / 16 * 8)) : "memory");
  if (threadIdx.x < 32) for (int n = 0; n < 2; n++) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[4 * n]), "+f"(c[4 * n + 1]), "+f"(c[4 * n + 2]), "+f"(c[4 * n + 3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[2 * n]), "r"(y[2 * n + 1]));
    if (blockIdx.x == 0) for (int e = 0; e < 4; e++)
      out_ptr[(lane / 4 + e / 2 * 8) * 16 + n * 8 + lane % 4 * 2 + e % 2] = c[4 * n + e];
  }
"""


def test_matrix_instructions_multiply_fragments_in_the_layouts_of_ptx():
    n = np.arange(512)
    values = (n * 5 % 7 - n // 16 % 5).astype(np.float32).reshape(2, 16, 16)
    for seed in range(3):
        out = run(MATRICES, shared=1024, size=256, seed=seed)["out"].reshape(16, 16)
        np.testing.assert_array_equal(out, 1 + values[0] @ values[1])


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("shared(s + 256 +", "shared(s + 252 +", "not aligned to 16 bytes"),
        ("threadIdx.x < 32)", "lane < 16)", "deadlock"),
    ],
)
def test_matrix_instructions_need_alignment_and_whole_warps(right, wrong, message):
    with pytest.raises(EmulationError, match=message):
        run(MATRICES.replace(right, wrong), shared=1024, size=256)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if (threadIdx.x < 32) __syncthreads();", "deadlock"),
        ("if (threadIdx.x < 32) __barrier_sync_count(1, 32); else __barrier_sync_count(1, 64);", "barrier of"),
        ("__barrier_sync_count(1, 32);", "barrier of 32 threads"),
        (
            "while (__nv_atomic_load_n(n_ptr, 0, __NV_THREAD_SCOPE_DEVICE) < 1) __nanosleep(8);",
            "deadlock.*for a counter",
        ),
        ("if (threadIdx.x < 16) __syncwarp();", "deadlock"),
        ("out_ptr[128 + threadIdx.x] = 0;", "a write out of bounds, between out and n"),
        ("extern __shared__ float s[];\ns[64 + threadIdx.x] = 0;", "outside of shared memory"),
        ("this is no C++;", "does not accept"),
    ],
)
def test_what_would_hang_or_corrupt_is_an_error(body, message):
    with pytest.raises(EmulationError, match=message):
        run(body, shared=256)


@pytest.mark.parametrize("at", [-1, 4])
def test_a_store_outside_of_an_array_of_a_thread_shows(at):
    body = f"""
  alignas(64) float a[4];
  float* p = a;
  a[0] = 1, p[{at}] = 1;
  out_ptr[threadIdx.x] = a[0];"""
    with pytest.raises(EmulationError, match="outside of an array of 4 elements"):
        run(body)


def test_what_lies_behind_an_array_of_a_thread_is_no_number():
    body = """
  alignas(64) float a[4];
  float* p = a;
  out_ptr[threadIdx.x] = p[4];"""
    assert np.isnan(run(body)["out"][:64]).all()


@pytest.mark.parametrize("at", [-1, 64])
def test_a_store_outside_of_a_shared_array_shows(at):
    body = f"__shared__ float s[64];\n float* p = s;\n p[{at}] = 1;\n out_ptr[0] = p[0];"
    with pytest.raises(EmulationError, match="outside of shared memory"):
        run(body)


@pytest.mark.parametrize(("width", "nbytes"), [(2, 8), (4, 16)])
def test_a_vector_that_is_not_aligned_shows(width, nbytes):
    body = "float{0} v = *(float{0}*)(out_ptr + {1});\n *(float{0}*)(out_ptr + {2}) = v;"
    run(body.format(width, width, 2 * width))
    for at in ((1, width), (width, width // 2)):
        with pytest.raises(EmulationError, match=f"not aligned to {nbytes} bytes"):
            run(body.format(width, *at))
