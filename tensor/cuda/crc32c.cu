#include "base/crc32c_polynomials.h"
#include "tensor/cuda/crc32c.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 256;
constexpr int kStretchUnits = Crc32cParts::kStretchBytes / Crc32cParts::kUnitBytes;
// Shifts that the kernel needs. A unit is four words of 32 bits, and each word is shifted to its
// place in the unit. The fifth shift moves a thread's sum across the units of the other threads to
// its next unit.
constexpr int kWords = 4, kShifts = kWords + 1, kBytes = 4;

// A shift is linear over bits, so a table of each single bit's result is enough: by shift, byte and
// bit.
struct ShiftedBits {
  uint32_t of[kShifts][kBytes][8];
};
constexpr ShiftedBits ShiftEachBit() {
  ShiftedBits bits{};
  for (int shift = 0; shift < kShifts; ++shift) {
    const size_t bytes =
        shift < kWords ? kBytes * (kWords - shift) : kThreads * Crc32cParts::kUnitBytes;
    const uint32_t power = crc32c::PowerOfX(bytes);
    for (int bit = 0; bit < 32; ++bit) {
      bits.of[shift][bit / 8][bit % 8] = crc32c::Multiply(uint32_t{1} << bit, power);
    }
  }
  return bits;
}
__constant__ const ShiftedBits kShiftedBits = ShiftEachBit();

// By thread: the power of x by which its sum must be multiplied, since the units of the threads
// after it follow its last unit.
struct Powers {
  uint32_t of[kThreads];
};
constexpr Powers PowersBehind() {
  Powers powers{};
  for (int i = 0; i < kThreads; ++i) {
    powers.of[i] = crc32c::PowerOfX((kThreads - 1 - i) * Crc32cParts::kUnitBytes);
  }
  return powers;
}
__constant__ const Powers kPowersBehind = PowersBehind();

using Tables = uint32_t[kShifts][kBytes][kThreads];

// Fills the tables: in each, thread i makes entry i, which is the sum over the bits of i.
__device__ void MakeTables(Tables& tables) {
#pragma unroll
  for (int shift = 0; shift < kShifts; ++shift) {
#pragma unroll
    for (int byte = 0; byte < kBytes; ++byte) {
      uint32_t entry = 0;
#pragma unroll
      for (int bit = 0; bit < 8; ++bit) {
        // 0 - (0 or 1) is a mask of no or of all bits, so no branch is needed.
        entry ^= kShiftedBits.of[shift][byte][bit] & (0u - (threadIdx.x >> bit & 1));
      }
      tables[shift][byte][threadIdx.x] = entry;
    }
  }
  __syncthreads();
}

__device__ uint32_t Shifted(const Tables& tables, int shift, uint32_t word) {
  return tables[shift][0][word & 0xFF] ^ tables[shift][1][word >> 8 & 0xFF] ^
         tables[shift][2][word >> 16 & 0xFF] ^ tables[shift][3][word >> 24];
}

struct Xor {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a ^ b; }
};

// Sums one stretch per block. Of every 256 units each thread sums one. If the count is no multiple
// of 256, the first round is the incomplete one, as zeros in front do not change a remainder.
__global__ void SumStretches(const uint4* all_units, int64_t all_count, int tail_bytes,
                             Crc32cParts* parts) {
  __shared__ Tables tables;
  MakeTables(tables);
  const int64_t first = int64_t{blockIdx.x} * kStretchUnits;
  const int64_t left = all_count - first;
  const int count = static_cast<int>(left < kStretchUnits ? left : kStretchUnits);
  const int rounds = (count + kThreads - 1) / kThreads;
  uint32_t sum = 0;
  for (int unit = count - rounds * kThreads + static_cast<int>(threadIdx.x); unit < count;
       unit += kThreads) {
    if (unit < 0) continue;
    const uint4 words = all_units[first + unit];
    sum = Shifted(tables, kWords, sum) ^ Shifted(tables, 0, words.x) ^ Shifted(tables, 1, words.y) ^
          Shifted(tables, 2, words.z) ^ Shifted(tables, 3, words.w);
  }
  sum = BlockReduce<Xor>(crc32c::Multiply(kPowersBehind.of[threadIdx.x], sum));
  if (threadIdx.x == 0) parts->remainders[blockIdx.x] = sum;
  if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < tail_bytes) {
    parts->tail[threadIdx.x] = reinterpret_cast<const uint8_t*>(all_units + all_count)[threadIdx.x];
  }
}

}  // namespace

Error SubmitCrc32c(CudaDevice* device, const void* bytes, size_t size, Crc32cParts* parts) {
  const auto units = static_cast<int64_t>(size / Crc32cParts::kUnitBytes);
  const dim3 blocks = BlocksFor(units > 0 ? units : 1, kStretchUnits);
  return Launch(device, blocks, kThreads, SumStretches, static_cast<const uint4*>(bytes), units,
                static_cast<int>(size % Crc32cParts::kUnitBytes), parts);
}

}  // namespace thinwire
