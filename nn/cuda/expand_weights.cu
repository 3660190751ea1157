#include "nn/cuda/kernels.h"
#include "nn/cuda/map.cuh"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

// The operations of nn/cpu/expand_weights.cc, with the same bits: a product rounded to fp32, then
// to the type of the weights.
template <typename To>
struct FromInt8 {
  template <int kN>
  struct Values {
    float x[kN];
  };
  const int8_t* codes;
  const float* scales;
  int64_t columns;
  To* to;

  // Reads neighbours, which are all in one row.
  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    const float scale = scales[at / columns];
#pragma unroll
    for (int i = 0; i < kN; ++i) values->x[i] = static_cast<float>(codes[at + i]) * scale;
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
    StoreAligned(values->x, to + at);
  }
};

template <typename To>
struct FromNF4 {
  template <int kN>
  struct Values {
    float x[kN];
  };
  const uint8_t* codes;
  const float* scales;
  NF4Levels levels;
  To* to;

  template <int kN>
  __device__ void Read(int64_t at, Values<kN>* values) const {
    const float scale = scales[at / kNF4Block];
#pragma unroll
    for (int i = 0; i < kN; ++i) {
      const int byte = codes[(at + i) / 2];
      values->x[i] = levels.of[(at + i) % 2 == 0 ? byte >> 4 : byte & 0xF] * scale;
    }
  }
  template <int kN>
  __device__ void Write(int64_t at, Values<kN>* values) const {
    StoreAligned(values->x, to + at);
  }
};

template <typename To>
Error Expand(CudaDevice* device, const WeightExpansion& a) {
  const int64_t n = a.weights.elements(), columns = a.weights.dims[1];
  const bool is_aligned = AreAligned(a.weights.data);
  if (a.format == WeightFormat::kInt8) {
    const bool is_wide = is_aligned && columns % kWide<To> == 0;
    return LaunchMap<kWide<To>>(
        device, is_wide, n,
        FromInt8<To>{static_cast<const int8_t*>(a.codes), a.scales, columns, a.weights.as<To>()});
  }
  return LaunchMap<kWide<To>>(
      device, is_aligned, n,
      FromNF4<To>{static_cast<const uint8_t*>(a.codes), a.scales, {}, a.weights.as<To>()});
}

}  // namespace

Error Kernels::ExpandWeights(const WeightExpansion& a) {
  if (a.format == WeightFormat::kBF16) {
    const int64_t rows = a.weights.dims[0], columns = a.weights.dims[1];
    return cuda::Convert(device_, ViewOf(a.codes, DType::kBF16, {rows, columns}), a.weights);
  }
  return a.weights.dtype == DType::kF32 ? Expand<float>(device_, a) : Expand<uint16_t>(device_, a);
}

}  // namespace thinwire::cuda
