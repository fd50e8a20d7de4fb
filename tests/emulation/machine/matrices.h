// A warp's matrix instructions, for cuda_host.h: PTX's layouts of fragments, element by element (PTX ISA, "Matrix
// Fragments for mma.m16n8k16" and "mma.m16n8k8"). `asm` is turned into calls of these by emulate.py, with its operands in
// PTX's order.
#pragma once

namespace emu {
struct tf32 { unsigned bits; };  // the low 13 bits of a number of single precision are not read
void load_matrices(bool transposed, unsigned* const (&result)[4], size_t address);
template <class T> void multiply_matrices(float* const (&d)[4], const unsigned (&ab)[6], const float (&c)[4]);
}  // namespace emu

inline float __uint_as_float(unsigned bits) {
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
inline size_t __cvta_generic_to_shared(const void* p) { return reinterpret_cast<size_t>(p); }
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& a, unsigned& b, unsigned& c, unsigned& d, size_t row) {
  emu::load_matrices(false, {&a, &b, &c, &d}, row);
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& a, unsigned& b, unsigned& c, unsigned& d, size_t row) {
  emu::load_matrices(true, {&a, &b, &c, &d}, row);
}
inline void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
    unsigned b1, float c0, float c1, float c2, float c3) {
  emu::multiply_matrices<half>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1}, {c0, c1, c2, c3});
}
inline void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
    unsigned b1, float c0, float c1, float c2, float c3) {
  emu::multiply_matrices<nv_bfloat16>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1}, {c0, c1, c2, c3});
}
inline void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(
    float& d0, float& d1, float& d2, float& d3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
    unsigned b1, float c0, float c1, float c2, float c3) {
  emu::multiply_matrices<emu::tf32>({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1}, {c0, c1, c2, c3});
}
inline void cvt_rna_tf32_f32(unsigned& nearest, float x) {
  std::memcpy(&nearest, &x, sizeof x);
  if (std::isfinite(x)) nearest += 0x1000;  // halves away from zero
  nearest = std::isnan(x) ? 0x7FFFFFFF : nearest & ~0x1FFFu;
}
