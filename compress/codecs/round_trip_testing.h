// Helpers for tests of codecs: tensors from lists, and a codec's round trip.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "base/status.h"
#include "compress/codec.h"
#include "compress/codecs/division.h"
#include "compress/codecs/new_codec.h"
#include "compress/cpu/kernels.h"
#include "compress/support.h"
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

// Returns a bf16 tensor of the upper halves of the values, which bf16 holds exactly.
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

// Returns nearly normally distributed values, each a sum of uniform numbers. With `relu`, negative
// ones are zero.
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

inline SupportMap SupportOfValues(const std::vector<float>& activation) {
  return *SupportMap::Of(TensorOf(activation), CpuCodecKernels());
}
// Returns a support of about half of the elements, among them the first: an element is in it by the
// highest bit of a multiplicative hash of its index.
inline SupportMap SomeSupport(int64_t elements) {
  std::vector<float> activation(elements);
  for (int64_t i = 0; i < elements; ++i) {
    activation[i] = static_cast<float>((static_cast<uint32_t>(i) * 0x9E3779B9u >> 31) ^ 1);
  }
  return SupportOfValues(activation);
}

// Context of the first message of a direction. A codec that needs a support and is given none gets
// SomeSupport.
class TestContext {
 public:
  TestContext(const CodecSpec& spec, int64_t elements, uint64_t random_key,
              const SupportMap* support, absl::Span<const uint32_t> document_rows = {}) {
    context_.random_key = random_key;
    context_.document_rows = document_rows;
    context_.next_carry = &next_;
    if (!spec.needs_support()) return;
    if (support == nullptr) some_ = SomeSupport(elements);
    context_.support = support != nullptr ? support : &*some_;
  }
  const MessageContext& get() const { return context_; }

 private:
  std::shared_ptr<const Carry> next_;
  MessageContext context_;
  std::optional<SupportMap> some_;
};

// Returns the data of one part of what messages left; "" without it.
inline std::string DataOfPart(const std::shared_ptr<const Carry>& carry, const std::string& name) {
  if (carry == nullptr) return "";
  for (const StoredTensor& part : carry->Parts()) {
    if (part.name == name) return std::string(part.data);
  }
  return "";
}

inline absl::StatusOr<std::vector<uint8_t>> EncodeToBytes(
    const CodecSpec& spec, const Tensor& x, uint64_t random_key = 1,
    const SupportMap* support = nullptr, absl::Span<const uint32_t> documents = {}) {
  const auto codec = CodecOf(spec);
  const TestContext context(spec, x.elements(), random_key, support, documents);
  const auto count = static_cast<int64_t>(documents.size());
  std::vector<uint8_t> payload(codec->MaxPayloadBytes(x.shape(), x.dtype()) +
                               MaxDocumentBytes(spec, x.shape(), count));
  ASSIGN_OR_RETURN(const size_t bytes, codec->Encode(x, context.get(), absl::MakeSpan(payload)));
  payload.resize(bytes);
  return payload;
}

// Decodes into memory filled with 0x3F bytes, so that an element left alone shows.
inline absl::StatusOr<Tensor> DecodeFromBytes(const CodecSpec& spec,
                                              const std::vector<uint8_t>& payload,
                                              const Shape& shape, DType dtype = DType::kF32,
                                              const SupportMap* support = nullptr,
                                              absl::Span<const uint32_t> documents = {}) {
  Tensor y = *Tensor::Allocate(CpuDevice(), dtype, shape);
  if (y.bytes() > 0) std::memset(y.data(), 0x3F, y.bytes());
  const TestContext context(spec, shape.elements(), 0, support, documents);
  RETURN_IF_ERROR(CodecOf(spec)->Decode(payload, context.get(), &y));
  return y;
}

inline absl::StatusOr<std::vector<float>> RoundTrip(const CodecSpec& spec, const Tensor& x,
                                                    uint64_t random_key = 1,
                                                    const SupportMap* support = nullptr) {
  ASSIGN_OR_RETURN(const std::vector<uint8_t> payload, EncodeToBytes(spec, x, random_key, support));
  ASSIGN_OR_RETURN(const Tensor y, DecodeFromBytes(spec, payload, x.shape(), x.dtype(), support));
  return FloatsOf(y);
}

}  // namespace thinwire
