#include "compress/cpu/mean_cells.h"
#include "compress/cuda/values.h"
#include "compress/half.h"
#include "compress/layout.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.cuh"

namespace thinwire {
namespace {

constexpr int kThreads = 256;

// Kept values of one group, which a block holds, while their cells are found. The whole block calls
// each function.
struct MeanGroup {
  // Sets the first `num_cells` cells. A thread keeps the cells of its own values, so it reads what
  // it wrote. The reductions wait for all threads before cells are overwritten.
  __device__ void SumUp(int num_cells, MeanCell (&cells)[kMostCells]) const {
    for (int cell = 0; cell < num_cells; ++cell) {
      uint64_t sum = 0, count = 0;
      for (int64_t i = threadIdx.x; i < n; i += kThreads) {
        if (cell_of[i] != cell) continue;
        sum += UnitsOf(values[i], scale);
        ++count;
      }
      sum = BlockReduce<Sum>(sum);
      count = BlockReduce<Sum>(count);
      if (threadIdx.x == 0) cells[cell] = {sum, count};
    }
    __syncthreads();
  }

  const float* values;
  int64_t n;
  uint8_t* cell_of;
  double scale;
};

__device__ uint32_t LargestMagnitude(const float* values, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    largest = max(largest, BitsOf(values[i]) & kMagnitudeMask);
  }
  return BlockReduce<Greatest>(largest);
}

// Encodes a group per block: writes its means, and its codes a byte each.
__global__ void EncodeKernel(const float* values, int64_t n, int64_t group, uint32_t bits,
                             uint8_t* codes, float* means) {
  __shared__ MeanCell cells[kMostCells];
  const int64_t begin = group * blockIdx.x, size = min(group, n - begin);
  const float* const x = values + begin;
  const int exponent = UnitExponent(FloatOf(LargestMagnitude(x, size)));
  const MeanGroup own = {x, size, codes + begin, std::ldexp(1.0, exponent)};
  for (int64_t i = threadIdx.x; i < size; i += kThreads) own.cell_of[i] = 0;
  own.SumUp(1, cells);
  for (uint32_t bit = 1; bit < bits; ++bit) {
    for (int64_t i = threadIdx.x; i < size; i += kThreads) {
      const uint8_t cell = own.cell_of[i];
      own.cell_of[i] =
          static_cast<uint8_t>(2 * cell + IsAboveMean(cells[cell], UnitsOf(x[i], own.scale)));
    }
    own.SumUp(1 << bit, cells);
  }
  const unsigned num_cells = CellsOf(bits);
  for (int64_t i = threadIdx.x; i < size; i += kThreads) {
    if (x[i] < 0) own.cell_of[i] |= static_cast<uint8_t>(num_cells);
  }
  if (threadIdx.x < num_cells) {
    means[int64_t{blockIdx.x} * num_cells + threadIdx.x] = MeanOf(cells[threadIdx.x], exponent);
  }
}

// Packs eight codes per thread, which fill `bits` bytes.
__global__ void PackKernel(const uint8_t* codes, int64_t n, uint32_t bits, uint8_t* out) {
  const int64_t eight = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t left = n - 8 * eight;
  if (left <= 0) return;
  uint32_t packed = 0;
  for (int j = 0; j < 8 && j < left; ++j) {
    packed |= uint32_t{codes[8 * eight + j]} << (j * bits);
  }
  const uint32_t bytes = left >= 8 ? bits : (static_cast<uint32_t>(left) * bits + 7) / 8;
  for (uint32_t b = 0; b < bytes; ++b) {
    out[eight * bits + b] = static_cast<uint8_t>(packed >> (8 * b));
  }
}

__global__ void DecodeKernel(const float* means, const uint8_t* codes, int64_t n, int64_t group,
                             uint32_t bits, float* values) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= n) return;
  const int64_t at = i * bits;
  const uint32_t both = codes[at / 8] | uint32_t{codes[at / 8 + 1]} << 8;
  const uint32_t code = both >> (at % 8) & ((1u << bits) - 1);
  const uint32_t num_cells = CellsOf(bits);
  const float mean = means[i / group * num_cells + code % num_cells];
  values[i] = code < num_cells ? mean : -mean;
}

int64_t GroupOf(const CodecSpec& spec, int64_t n) { return spec.group > 0 ? spec.group : n; }

}  // namespace

Error SubmitMeanValues(CudaDevice* device, const float* values, int64_t n, const CodecSpec& spec,
                       uint8_t* cells, uint8_t* out) {
  const int64_t group = GroupOf(spec, n);
  RETURN_ERROR(Launch(device, BlocksFor(n, group), dim3(kThreads), EncodeKernel, values, n, group,
                      spec.bits, cells, reinterpret_cast<float*>(out)));
  return Launch(device, BlocksFor(n, 8 * kThreads), dim3(kThreads), PackKernel, cells, n, spec.bits,
                out + MeansHeaderBytes(spec, n));
}

Error SubmitReadMeanValues(CudaDevice* device, const uint8_t* from, int64_t n,
                           const CodecSpec& spec, float* values) {
  return Launch(device, BlocksFor(n, kThreads), dim3(kThreads), DecodeKernel,
                reinterpret_cast<const float*>(from), from + MeansHeaderBytes(spec, n), n,
                GroupOf(spec, n), spec.bits, values);
}

}  // namespace thinwire
