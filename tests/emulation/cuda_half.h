// Half precision, for cuda_host.h.
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
