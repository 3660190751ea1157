// The numbers of base/random.h in a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

// Numbers 4 counter to 4 counter + 3 of RandomStream(key).
__device__ inline void PhiloxNumbers(uint64_t key, uint64_t counter, uint32_t (&numbers)[4]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t x0 = static_cast<uint32_t>(counter), x1 = static_cast<uint32_t>(counter >> 32);
  uint32_t x2 = 0, x3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * x2;
    x0 = static_cast<uint32_t>(p1 >> 32) ^ x1 ^ k0;
    x1 = static_cast<uint32_t>(p1);
    x2 = static_cast<uint32_t>(p0 >> 32) ^ x3 ^ k1;
    x3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  numbers[0] = x0, numbers[1] = x1, numbers[2] = x2, numbers[3] = x3;
}

}  // namespace thinwire
