// A warp's matrix instructions, for cuda_host.h: PTX's layouts of fragments, element by element (PTX ISA, "Matrix
// Fragments for mma.m16n8k16"). `asm` is turned into calls of these by emulate.py, with its operands in PTX's order.
#pragma once

namespace emu {
struct WarpMatrices { const uint16_t* rows[32]; unsigned words[32][6]; };
inline std::map<const Warp*, WarpMatrices> matrices;

inline void load_matrices(bool transposed, unsigned* const (&result)[4], size_t address) {
  WarpMatrices& shared = matrices[&warp_of()];
  int lane = now->linear % 32;
  if (address % 16) fail("row of a matrix that is not aligned to 16 bytes");
  shared.rows[lane] = reinterpret_cast<const uint16_t*>(address);
  warp_barrier(0xFFFFFFFFu);
  for (int m = 0; m < 4; m++) {
    unsigned pair = 0;
    for (int n = 0; n < 2; n++) {
      int slow = lane / 4, fast = lane % 4 * 2 + n;
      unsigned element = transposed ? shared.rows[m * 8 + fast][slow] : shared.rows[m * 8 + slow][fast];
      pair |= element << 16 * n;
    }
    *result[m] = pair;
  }
  warp_barrier(0xFFFFFFFFu);  // nobody goes on, to write what others still read
}

inline float half_of(unsigned word, int which) {
  uint16_t bits = word >> 16 * which;
  half value;
  std::memcpy(&value, &bits, 2);
  return float(value);
}

inline void multiply_matrices(float* const (&d)[4], const unsigned (&ab)[6], const float (&c)[4]) {
  WarpMatrices& shared = matrices[&warp_of()];
  int lane = now->linear % 32;
  std::memcpy(shared.words[lane], ab, sizeof ab);
  warp_barrier(0xFFFFFFFFu);
  for (int e = 0; e < 4; e++) {
    int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    float sum = c[e];
    for (int k = 0; k < 16; k++) {
      unsigned a = shared.words[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      unsigned b = shared.words[column * 4 + k % 8 / 2][4 + k / 8];
      sum += half_of(a, k % 2) * half_of(b, k % 2);
    }
    *d[e] = sum;
  }
  warp_barrier(0xFFFFFFFFu);
}
}  // namespace emu

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
  emu::multiply_matrices({&d0, &d1, &d2, &d3}, {a0, a1, a2, a3, b0, b1}, {c0, c1, c2, c3});
}
