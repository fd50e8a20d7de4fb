// Numbers of 16 bits, for cuda_host.h.
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

// ---- bfloat16: float's upper half; each result of an operation in float is rounded to the nearest, ties to even ----
struct nv_bfloat16 {
  unsigned short bits;
  nv_bfloat16() = default;
  nv_bfloat16(float x) {
    unsigned word;
    memcpy(&word, &x, sizeof word);
    bits = x != x ? 0x7FFF : (word + 0x7FFF + (word >> 16 & 1)) >> 16;
  }
  operator float() const {
    unsigned word = (unsigned)bits << 16;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
  }
};
using nv_bfloat162 = emu::Vec2<nv_bfloat16>;
using nv_bfloat164 = emu::Vec4<nv_bfloat16>;
inline nv_bfloat162 make_nv_bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
inline nv_bfloat164 make_nv_bfloat164(nv_bfloat16 x, nv_bfloat16 y, nv_bfloat16 z, nv_bfloat16 w) { return {x, y, z, w}; }
inline nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline float __bfloat162float(nv_bfloat16 x) { return x; }
