// Half precision and tensor cores, for cuda_host.h.
#pragma once

// ---- half precision: each operation rounded, as the host's compiler does it ----------------------------------------
using half = _Float16;
using half2 = emu::Vec2<half>;
using half4 = emu::Vec4<half>;
inline half2 make_half2(half x, half y) { return {x, y}; }
inline half4 make_half4(half x, half y, half z, half w) { return {x, y, z, w}; }
inline half __float2half_rn(float x) { return half(x); }
inline float __half2float(half x) { return float(x); }
inline half __hmax(half x, half y) { return x < y ? y : x; }
inline half __hmin(half x, half y) { return x < y ? x : y; }
inline half hexp(half x) { return half(expf(float(x))); }
inline half hlog(half x) { return half(logf(float(x))); }
inline half hsqrt(half x) { return half(sqrtf(float(x))); }
inline half hrsqrt(half x) { return half(1.0f / sqrtf(float(x))); }
inline half htanh(half x) { return half(tanhf(float(x))); }
inline half hcos(half x) { return half(cosf(float(x))); }
inline half hsin(half x) { return half(sinf(float(x))); }
inline half hpow(half x, half y) { return half(powf(float(x), float(y))); }
inline half __habs(half x) { return x < half(0) ? -x : x; }
#define CUDART_INF_FP16 half(INFINITY)

// ---- tensor cores: every thread of a warp has the whole fragment, and all must take part ---------------------------
namespace nvcuda::wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
  static_assert(M == 16 && N == 16 && K == 16);
  T at[16][16];
};
template <class T> void check_alignment(const T* p, unsigned stride) {
  if (reinterpret_cast<uintptr_t>(p) % 32) emu::fail("fragment that is not aligned to 32 bytes");
  if (stride * sizeof(T) % 16) emu::fail("fragment whose rows are not aligned to 16 bytes");
}
template <class F, class T> void fill_fragment(F& f, T value) {
  for (auto& row : f.at) for (auto& x : row) x = value;
}
template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& f, const T* p, unsigned stride) {
  check_alignment(p, stride);
  __syncwarp();
  bool by_rows = std::is_same_v<Layout, row_major>;
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) f.at[i][j] = by_rows ? p[i * stride + j] : p[j * stride + i];
  __syncwarp();
}
template <class T>
void store_matrix_sync(T* p, const fragment<accumulator, 16, 16, 16, T>& f, unsigned stride, layout_t layout) {
  check_alignment(p, stride);
  __syncwarp();
  for (int n = emu::now->linear % 32; n < 256; n += 32) {
    int i = n / 16, j = n % 16;
    p[layout == mem_row_major ? i * stride + j : j * stride + i] = f.at[i][j];
  }
  __syncwarp();
}
template <class A, class B, class C>
void mma_sync(C& d, const A& a, const B& b, const C& c) {
  C sum;
  for (int i = 0; i < 16; i++) for (int j = 0; j < 16; j++) {
    float s = c.at[i][j];
    for (int k = 0; k < 16; k++) s += float(a.at[i][k]) * float(b.at[k][j]);
    sum.at[i][j] = s;
  }
  __syncwarp();
  d = sum;
}
}  // namespace nvcuda::wmma
