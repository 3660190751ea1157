// PTX's instructions for matrices that a warp shares: mma.m16n8k16 of bf16, and ldmatrix. The
// fragments are laid out as in tensor/cuda/tensor_cores.cuh.
#pragma once

#include <cstdint>
#include <cstring>

#include "third_party/cuda_on_host/block.h"

namespace cuda_on_host {

#define CUDA_ON_HOST_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Returns half `half` of a word as fp32; a bf16 is the upper half of an fp32.
inline float WidenedHalf(uint64_t word, unsigned half) {
  const uint32_t bits = static_cast<uint32_t>(word >> (16 * half)) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// Adds the product of a (16 x 16) and b (16 x 8) to c. Three meetings bring all lanes' words
// together; each lane then computes its four elements of c.
inline void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4],
                        CUDA_ON_HOST_HERE) {
  uint64_t words[3][32];  // of all lanes: a's first two, a's last two, b's
  const uint64_t own[3] = {a[0] | uint64_t{a[1]} << 32, a[2] | uint64_t{a[3]} << 32,
                           b0 | uint64_t{b1} << 32};
  for (int i = 0; i < 3; ++i) {
    const WarpValues all = MeetWarp({"mma.sync", file, line}, 0xffffffffu, own[i]);
    memcpy(words[i], all.of_lane, sizeof(words[i]));
  }
  const unsigned lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  for (unsigned e = 0; e < 4; ++e) {
    const unsigned below = e / 2, column = 2 * t + e % 2;  // in row g + 8 * below
    for (unsigned k = 0; k < 16; ++k) {
      const uint64_t of_a = words[k / 8][4 * g + k % 8 / 2] >> (32 * below);
      const uint64_t of_b = words[2][4 * column + k % 8 / 2] >> (32 * (k / 8));
      c[e] += WidenedHalf(of_a, k % 2) * WidenedHalf(of_b, k % 2);
    }
  }
}

// Loads four 8 x 8 matrices. Lane 8 m + r brings the address of row r of matrix m, and every lane
// then reads its two elements of each matrix.
inline void LoadMatrices(const uint16_t* row, bool transposed, uint32_t (&words)[4],
                         CUDA_ON_HOST_HERE) {
  const WarpValues rows =
      MeetWarp({"ldmatrix", file, line}, 0xffffffffu, reinterpret_cast<uint64_t>(row));
  const unsigned lane = threadIdx.x % kWarp, g = lane / 4, t = lane % 4;
  for (unsigned m = 0; m < 4; ++m) {
    const auto at = [&](unsigned r, unsigned column) -> uint32_t {
      return reinterpret_cast<const uint16_t*>(rows.of_lane[8 * m + r])[column];
    };
    words[m] =
        transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16;
  }
}

#undef CUDA_ON_HOST_HERE

}  // namespace cuda_on_host
