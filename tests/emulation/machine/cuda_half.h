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
inline half hpow(half x, half y) { return half(powf(float(x), float(y))); }
inline half __habs(half x) { return x < half(0) ? -x : x; }
#define CUDART_INF_FP16 half(INFINITY)

// ---- bfloat16: float's upper half; each result of an operation in float is rounded to the nearest, ties to even ----
struct nv_bfloat16 {
  unsigned short bits;
  nv_bfloat16() = default;
  nv_bfloat16(const nv_bfloat16&) = default;
  nv_bfloat16(const volatile nv_bfloat16& x) : bits(x.bits) {}
  nv_bfloat16& operator=(const nv_bfloat16&) = default;
  void operator=(const nv_bfloat16& x) volatile { bits = x.bits; }
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
inline nv_bfloat16 operator+(nv_bfloat16 x, nv_bfloat16 y) { return float(x) + float(y); }
inline nv_bfloat16 operator-(nv_bfloat16 x, nv_bfloat16 y) { return float(x) - float(y); }
inline nv_bfloat16 operator*(nv_bfloat16 x, nv_bfloat16 y) { return float(x) * float(y); }
inline nv_bfloat16 operator/(nv_bfloat16 x, nv_bfloat16 y) { return float(x) / float(y); }
inline nv_bfloat16 hpow(nv_bfloat16 x, nv_bfloat16 y) { return powf(float(x), float(y)); }
inline nv_bfloat16 __habs(nv_bfloat16 x) { return fabsf(float(x)); }
using nv_bfloat162 = emu::Vec2<nv_bfloat16>;
using nv_bfloat164 = emu::Vec4<nv_bfloat16>;
inline nv_bfloat162 make_nv_bfloat162(nv_bfloat16 x, nv_bfloat16 y) { return {x, y}; }
inline nv_bfloat164 make_nv_bfloat164(nv_bfloat16 x, nv_bfloat16 y, nv_bfloat16 z, nv_bfloat16 w) { return {x, y, z, w}; }
inline nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline float __bfloat162float(nv_bfloat16 x) { return x; }

// ---- functions of both: of single precision, rounded ---------------------------------------------------------------
#define EMU_OF_HALVES(name, function)                                   \
  inline half name(half x) { return half(function(float(x))); }         \
  inline nv_bfloat16 name(nv_bfloat16 x) { return function(float(x)); }
EMU_OF_HALVES(hexp, expf)
EMU_OF_HALVES(hlog, logf)
EMU_OF_HALVES(hsqrt, sqrtf)
EMU_OF_HALVES(hrsqrt, rsqrtf)
EMU_OF_HALVES(hsin, sinf)
EMU_OF_HALVES(hcos, cosf)
EMU_OF_HALVES(htan, tanf)
EMU_OF_HALVES(htanh, tanhf)
EMU_OF_HALVES(hatan, atanf)
EMU_OF_HALVES(herf, erff)
EMU_OF_HALVES(hfloor, floorf)
EMU_OF_HALVES(hceil, ceilf)
EMU_OF_HALVES(htrunc, truncf)
EMU_OF_HALVES(hrint, rintf)
#undef EMU_OF_HALVES
