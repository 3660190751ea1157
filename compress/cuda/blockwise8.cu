#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "compress/cpu/codebook_table.h"
#include "compress/cuda/codecs.h"
#include "compress/cuda/extremes.cuh"
#include "compress/cuda/quotient.cuh"
#include "compress/cuda/scope_cursor.cuh"
#include "compress/cuda/tile.cuh"
#include "compress/layout.h"
#include "compress/refusals.h"
#include "tensor/cuda/bf16.cuh"
#include "tensor/cuda/error.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int64_t kBlocksEach = 8;  // per multiprocessor; each block loads the table once

// Turns the blocks' extremes into the payload's absmax values, a thread per block.
__global__ void AbsmaxKernel(const Extremes* extremes, int64_t count, float* absmax,
                             uint32_t* nonfinite) {
  const int64_t b = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (b >= count) return;
  const uint32_t largest = LargestMagnitude(extremes[b]);
  if (largest >= kInfinityBits) atomicMax(nonfinite, 1u);
  absmax[b] = __uint_as_float(largest);
}

constexpr int kEntries = 2 * kCodebookBuckets;

// Copies the codebook's table to shared memory, where lookups by many lanes are fast.
__device__ inline void LoadEntries(const CodebookTable* table, int32_t (&entries)[kEntries]) {
  for (int i = threadIdx.x; i < kEntries; i += blockDim.x) entries[i] = table->entries[i];
  __syncthreads();
}

// Returns the code of the value nearest to t (codebook_table.h).
__device__ uint32_t NearestCode(float t, const int32_t* table) {
  const uint32_t bits = __float_as_uint(t), magnitude = bits & kMagnitudeMask;
  // It lies between 0 and 1, except for elements of blocks that are refused.
  const int32_t in_table =
      min(max(static_cast<int32_t>(magnitude), kCodebookLeastBits), kCodebookOneBits);
  const bool negative = bits >> 31 != 0;
  const int32_t bucket = (in_table >> kCodebookLowBits) - kCodebookFirstBucket;
  const int32_t entry = table[bucket + (negative ? kCodebookBuckets : 0)];
  const int32_t rank = (entry + (in_table & kCodebookLowMask)) >> kCodebookLowBits;
  return static_cast<uint32_t>(kZeroCode + (negative ? -rank : rank));
}

// Returns the code of an element of a block whose largest magnitude is `unit`. All numbers that are
// much smaller than the least bound between values have one code, so their quotient need not be
// exact.
__device__ uint32_t CodeOf(float x, const OrdinaryDivisor& unit, const int32_t* table) {
  static_assert(kCodebookLeastBits > 0x30000000, "2^-31");
  return NearestCode(unit.Divide<2>(x), table);
}

// Encodes blocks of any size, whose absmax is known. A thread stores four codes as one word.
template <typename T>
__global__ void EncodeKernel(const T* x, int64_t n, ContiguousScopes blocks, const float* absmax,
                             const CodebookTable* table, uint8_t* codes) {
  __shared__ int32_t entries[kEntries];
  LoadEntries(table, entries);
  for (int64_t tile = blockIdx.x; tile * kTile < n; tile += gridDim.x) {
    ScopeCursor cursor(blocks, TileBegin(tile));
    VisitTile(tile, x, n, [&](int64_t i, const float(&v)[4]) {
      uint32_t word = 0;
      cursor.ForEach(
          LeftOf(n, i), [&](int64_t block) { return OrdinaryDivisor(absmax[block]); },
          [&](int k, const OrdinaryDivisor& unit) {
            word |= CodeOf(v[k], unit, entries) << (8 * k);
          });
      if (i < n) *reinterpret_cast<uint32_t*>(codes + i) = word;
      cursor.Advance();
    });
  }
}

// Encodes a tensor whose blocks are tiles each: one read finds the largest magnitude and makes the
// codes.
template <typename T>
__global__ void EncodeTilesKernel(const T* x, int64_t n, const CodebookTable* table, float* absmax,
                                  uint8_t* codes, uint32_t* nonfinite) {
  __shared__ int32_t entries[kEntries];
  LoadEntries(table, entries);
  for (int64_t tile = blockIdx.x; tile * kTile < n; tile += gridDim.x) {
    float values[kTileVectors][4];
    int j = 0;
    uint32_t largest = 0;
    VisitTile(tile, x, n, [&](int64_t, const float(&v)[4]) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        values[j][k] = v[k];
        largest = max(largest, __float_as_uint(v[k]) & kMagnitudeMask);
      }
      ++j;
    });
    largest = BlockReduce<Greatest>(largest);
    const OrdinaryDivisor unit(__uint_as_float(largest));
    if (threadIdx.x == 0) {
      absmax[tile] = __uint_as_float(largest);
      if (largest >= kInfinityBits) atomicMax(nonfinite, 1u);
    }
#pragma unroll
    for (int i = 0; i < kTileVectors; ++i) {
      uint32_t word = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        word |= CodeOf(values[i][k], unit, entries) << (8 * k);
      }
      const int64_t at = TileBegin(tile) + i * kTileStride;
      if (at < n) *reinterpret_cast<uint32_t*>(codes + at) = word;
    }
  }
}

struct Values {
  float of_code[256];
};

// Decodes a tile. The codebook comes as a kernel argument and is copied to shared memory, because
// codes index it at run time.
template <typename T>
__global__ void DecodeKernel(const uint8_t* codes, const float* absmax, int64_t n,
                             ContiguousScopes blocks, Values values, T* x, uint32_t* refused) {
  __shared__ float of_code[256];
  of_code[threadIdx.x] = values.of_code[threadIdx.x];
  __syncthreads();
  ScopeCursor cursor(blocks, TileBegin(blockIdx.x));
  for (int j = 0; j < kTileVectors; ++j) {
    const int64_t i = TileBegin(blockIdx.x) + j * kTileStride;
    if (i >= n) return;
    const uint32_t word = *reinterpret_cast<const uint32_t*>(codes + i);
    float v[4] = {};
    const auto unit_of = [&](int64_t block) {
      const float unit = absmax[block];
      if (__float_as_uint(unit) >= kInfinityBits) *refused = 1;
      return unit;
    };
    cursor.ForEach(LeftOf(n, i), unit_of,
                   [&](int k, float unit) { v[k] = of_code[(word >> (8 * k)) & 0xFFu] * unit; });
    StoreVector(v, n - i, x + i);
    cursor.Advance();
  }
}
static_assert(kTileThreads == 256, "a thread loads a value of the codebook");

Values ValuesOfCodes() {
  const std::array<float, 256> codebook = CodebookValues();
  Values values;
  std::copy(codebook.begin(), codebook.end(), values.of_code);
  return values;
}

Scopes BlocksOf(const TensorView& x, uint32_t block) { return ScopesOf(x, Scope::kGroup, block); }

size_t HeaderBytes(const TensorView& x, uint32_t block) {
  return Blockwise8PayloadBytes(block, x.elements()) - x.elements();
}

}  // namespace

Error SubmitBlockwise8Encode(CudaDevice* device, const TensorView& x, uint32_t block,
                             uint8_t* payload, uint32_t* nonfinite) {
  const Scopes blocks = BlocksOf(x, block);
  CudaScratch extremes(device), table(device);
  RETURN_ERROR(table.Reserve(sizeof(CodebookTable)));
  const CodebookTable& host_table = TheCodebookTable();
  RETURN_ERROR(device->SubmitCopyFromHost(table.as<void>(), &host_table, sizeof(host_table)));
  float* const absmax = reinterpret_cast<float*>(payload);
  uint8_t* const codes = payload + 4 * blocks.count;
  if (block != kTile) {
    RETURN_ERROR(extremes.Reserve(blocks.count * sizeof(Extremes)));
    RETURN_ERROR(SubmitExtremes(device, x, blocks, Counted::kAll, extremes.as<Extremes>()));
    RETURN_ERROR(Launch(device, BlocksFor(blocks.count, kTileThreads), dim3(kTileThreads),
                        AbsmaxKernel, extremes.as<const Extremes>(), blocks.count, absmax,
                        nonfinite));
  }
  const dim3 grid = BlocksFor(blocks.total, kTile, kBlocksEach * device->multiprocessors());
  return WithTypedData(x, [&](const auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return block == kTile
               ? Launch(device, grid, dim3(kTileThreads), EncodeTilesKernel<T>, elements,
                        blocks.total, table.as<const CodebookTable>(), absmax, codes, nonfinite)
               : Launch(device, grid, dim3(kTileThreads), EncodeKernel<T>, elements, blocks.total,
                        ContiguousScopesOf(blocks), absmax, table.as<const CodebookTable>(), codes);
  });
}

Error SubmitBlockwise8Decode(CudaDevice* device, const uint8_t* payload, uint32_t block,
                             const TensorView& x, uint32_t* refused) {
  const Scopes blocks = BlocksOf(x, block);
  return WithTypedData(x, [&](auto* elements) {
    using T = std::decay_t<decltype(*elements)>;
    return LaunchTiles(device, blocks.total, DecodeKernel<T>, payload + 4 * blocks.count,
                       reinterpret_cast<const float*>(payload), blocks.total,
                       ContiguousScopesOf(blocks), ValuesOfCodes(), elements, refused);
  });
}

Error CudaBlockwise8Encode(CudaDevice* device, const CodecSpec& spec, const TensorView& x,
                           const KernelContext& /*context*/, const PayloadTarget& payload) {
  const uint32_t block = spec.block;
  *payload.bytes = Blockwise8PayloadBytes(block, x.elements());
  RETURN_ERROR(CheckCapacity("blockwise8", payload.capacity, *payload.bytes));
  if (x.elements() == 0) return Error{};
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(x, block), *payload.bytes));
  CudaScratch found(device);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(SubmitBlockwise8Encode(device, x, block, on_device.bytes(), found.as<uint32_t>()));
  uint32_t nonfinite = 0;
  RETURN_ERROR(payload.SubmitCopy(device, 0, on_device.bytes(), *payload.bytes));
  RETURN_ERROR(device->CopyToHost(&nonfinite, found.as<uint32_t>(), sizeof(nonfinite)));
  return nonfinite == 0 ? Error{} : CudaNonFiniteError(device, "blockwise8", x);
}

Error CudaBlockwise8Decode(CudaDevice* device, const PayloadSource& payload, const CodecSpec& spec,
                           const KernelContext& /*context*/, const TensorView& x) {
  const uint32_t block = spec.block;
  RETURN_ERROR(
      CheckPayloadBytes("blockwise8", payload.bytes, Blockwise8PayloadBytes(block, x.elements())));
  if (x.elements() == 0) return Error{};
  DevicePayload on_device(device);
  RETURN_ERROR(on_device.Reserve(HeaderBytes(x, block), payload.bytes));
  CudaScratch found(device);
  RETURN_ERROR(found.ReserveZeros(sizeof(uint32_t)));
  RETURN_ERROR(payload.SubmitCopy(device, 0, payload.bytes, on_device.bytes()));
  RETURN_ERROR(SubmitBlockwise8Decode(device, on_device.bytes(), block, x, found.as<uint32_t>()));
  uint32_t refused = 0;
  RETURN_ERROR(device->CopyToHost(&refused, found.as<void>(), sizeof(refused)));
  return refused == 0 ? Error{} : PayloadSource::Refused();
}

}  // namespace thinwire
