// Random numbers of base/random.h in a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

// Computes numbers 4 counter to 4 counter + 3 of RandomStream(key).
__device__ inline void PhiloxNumbers(uint64_t key, uint64_t counter, uint32_t (&numbers)[4]) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  uint32_t x2 = 0, x3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32_t high0 = __umulhi(kMultiplier0, x0), low0 = kMultiplier0 * x0;
    const uint32_t high1 = __umulhi(kMultiplier1, x2), low1 = kMultiplier1 * x2;
    x0 = high1 ^ x1 ^ k0;
    x1 = low1;
    x2 = high0 ^ x3 ^ k1;
    x3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  numbers[0] = x0, numbers[1] = x1, numbers[2] = x2, numbers[3] = x3;
}

}  // namespace thinwire
