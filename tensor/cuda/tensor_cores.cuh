// Products of small bf16 matrices by a whole warp, the fragments that they work on, and copies into
// shared memory that run in the background.
//
// A fragment is the part of a matrix that one thread of the warp holds. A word holds two
// neighbouring bf16, the first in its lower half. With lane = 4 g + t:
//   a [16, 16]: words of rows g and g + 8, at columns 2 t, then of both at columns 2 t + 8;
//   b [16, 8]: column g at rows 2 t, then at rows 2 t + 8;
//   c [16, 8], in fp32: row g at columns 2 t and 2 t + 1, then row g + 8 at both.
// So two neighbouring c, narrowed, make one a. (PTX ISA: mma.m16n8k16, ldmatrix, cp.async.)
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#ifdef __CUDACC__

namespace thinwire {

// Computes c += a b with sums in fp32.
__device__ inline void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                   float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Loads four matrices [8, 8] from shared memory. Lane 8 m + r gives the address of row r of matrix
// m, aligned to 16 bytes. words[m] is then row g of matrix m, at columns 2 t.
__device__ inline void LoadMatrices(const uint16_t* row, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// Loads the transposed matrices instead: words[m] is column g, at rows 2 t.
__device__ inline void LoadTransposed(const uint16_t* row, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))
               : "memory");
}

// Rounds two neighbours to bf16.
__device__ inline uint32_t NarrowTwo(float first, float second) {
  uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
}

// Starts to copy 16 bytes of device memory into shared memory, or zeros if nothing `exists` there.
// Both addresses are aligned to 16 bytes.
__device__ inline void StartCopy(uint16_t* to, const uint16_t* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}

// Makes one group of the copies that this thread has started since the last call.
__device__ inline void EndCopies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the last `kGroups` groups of this thread are under way.
template <int kGroups>
__device__ inline void AwaitCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

}  // namespace thinwire

#else  // the emulator

#include "tensor/cuda/bf16.cuh"
#include "third_party/cuda_on_host/tensor_cores.h"

namespace thinwire {

inline void MultiplyAdd(const uint32_t (&a)[4], uint32_t b0, uint32_t b1, float (&c)[4]) {
  cuda_on_host::MultiplyAdd(a, b0, b1, c);
}
inline void LoadMatrices(const uint16_t* row, uint32_t (&words)[4]) {
  cuda_on_host::LoadMatrices(row, /*transposed=*/false, words);
}
inline void LoadTransposed(const uint16_t* row, uint32_t (&words)[4]) {
  cuda_on_host::LoadMatrices(row, /*transposed=*/true, words);
}
inline void StartCopy(uint16_t* to, const uint16_t* from, bool exists) {
  for (int i = 0; i < 8; ++i) to[i] = exists ? from[i] : 0;
}
inline void EndCopies() {}
template <int kGroups>
void AwaitCopies() {}
inline uint32_t NarrowTwo(float first, float second) {
  return BFloatOf(first) | static_cast<uint32_t>(BFloatOf(second)) << 16;
}

}  // namespace thinwire

#endif
