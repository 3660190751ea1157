// What codec tests share: tensors from lists, and a codec's way there and back.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/cpu/kernels.h"
#include "tensor/cpu/device.h"
#include "tensor/tensor.h"

namespace thinwire {

inline Tensor TensorOf(const Shape& shape, const std::vector<float>& values) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kF32, shape);
  if (!values.empty()) std::memcpy(x.data(), values.data(), 4 * values.size());
  return x;
}
inline Tensor TensorOf(const std::vector<float>& values) {
  return TensorOf({static_cast<int64_t>(values.size())}, values);
}

// The upper halves of values that bf16 holds exactly.
inline Tensor BFloatTensorOf(const Shape& shape, const std::vector<float>& values) {
  Tensor x = *Tensor::Allocate(CpuDevice(), DType::kBF16, shape);
  uint8_t* to = static_cast<uint8_t*>(x.data());
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(to + 2 * i, reinterpret_cast<const uint8_t*>(&values[i]) + 2, 2);
  }
  return x;
}

inline std::vector<float> FloatsOf(const Tensor& x) {
  std::vector<float> values(x.elements());
  if (x.dtype() == DType::kF32) {
    values.assign(x.floats().begin(), x.floats().end());
  } else {
    const uint8_t* from = static_cast<const uint8_t*>(x.data());
    for (size_t i = 0; i < values.size(); ++i) {
      std::memcpy(reinterpret_cast<uint8_t*>(&values[i]) + 2, from + 2 * i, 2);
    }
  }
  return values;
}

// About normal: sums of uniform numbers. With `relu`, negative ones are zero.
inline std::vector<float> RandomValues(size_t n, uint64_t seed, bool relu = false) {
  RandomStream random(RandomKey(seed, "values"));
  std::vector<float> values(n);
  for (float& value : values) {
    value = random.NextFloat() + random.NextFloat() + random.NextFloat() - 1.5f;
    if (relu && value < 0) value = 0;
  }
  return values;
}

inline std::unique_ptr<Codec> CodecOf(const CodecSpec& spec) {
  return std::move(*NewCodec(spec, CpuCodecKernels()));
}

inline absl::StatusOr<std::vector<uint8_t>> EncodeToBytes(const CodecSpec& spec, const Tensor& x,
                                                          uint64_t random_key = 1) {
  const auto codec = CodecOf(spec);
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()));
  ASSIGN_OR_RETURN(const size_t bytes, codec->Encode(x, {random_key}, absl::MakeSpan(payload)));
  payload.resize(bytes);
  return payload;
}

// Decodes over ones, so that an element left alone shows.
inline absl::StatusOr<Tensor> DecodeFromBytes(const CodecSpec& spec,
                                              const std::vector<uint8_t>& payload,
                                              const Shape& shape, DType dtype = DType::kF32) {
  Tensor y = *Tensor::Allocate(CpuDevice(), dtype, shape);
  if (y.bytes() > 0) std::memset(y.data(), 0x3F, y.bytes());
  RETURN_IF_ERROR(CodecOf(spec)->Decode(payload, {}, &y));
  return y;
}

inline absl::StatusOr<std::vector<float>> RoundTrip(const CodecSpec& spec, const Tensor& x,
                                                    uint64_t random_key = 1) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, EncodeToBytes(spec, x, random_key));
  ASSIGN_OR_RETURN(const Tensor y, DecodeFromBytes(spec, payload, x.shape(), x.dtype()));
  return FloatsOf(y);
}

}  // namespace thinwire
