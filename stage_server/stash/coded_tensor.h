// A tensor that a codec has encoded to be kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/kernels.h"
#include "compress/support.h"
#include "tensor/tensor.h"

namespace thinwire {

// How tensors are encoded.
struct TensorCoding {
  const Codec* codec = nullptr;
  CodecKernels* kernels = nullptr;  // of the tensors' device
};

// What it was made with outlives it. Immutable, but for where the payload is.
class CodedTensor {
 public:
  // Encodes x. With `keeps_signs` no element of x is below zero, and those above zero are above
  // zero in Decode's result, too, and no others, if the codec decodes within the range of what it
  // encodes. Payloads stay on the device where the codec writes them there without waste. Returns
  // the errors of Codec::Encode.
  static absl::StatusOr<CodedTensor> Of(const Tensor& x, bool keeps_signs, uint64_t random_key,
                                        const TensorCoding& coding);

  // Returns a tensor of the type and shape of x.
  absl::StatusOr<Tensor> Decode(const TensorCoding& coding) const;

  // Returns the bytes in memory.
  size_t bytes() const;

  // Returns the memory of the payload, of the device or of its host; null if there is none.
  const std::shared_ptr<Buffer>& memory() const { return memory_; }
  size_t payload_bytes() const { return payload_bytes_; }
  // Replaces that memory by other with the same bytes of the same device, or by null until there
  // is such. With null there is nothing to decode.
  void set_memory(std::shared_ptr<Buffer> memory) { memory_ = std::move(memory); }

 private:
  CodedTensor(const Tensor& x) : device_(x.device()), dtype_(x.dtype()), shape_(x.shape()) {}
  absl::Status Encode(const Tensor& x, uint64_t random_key, const TensorCoding& coding);
  absl::Status DecodeTo(const TensorCoding& coding, Tensor* x) const;

  Device* device_;
  DType dtype_;
  Shape shape_;
  std::optional<SupportMap> support_;  // set if only the elements above zero are in the payload
  std::shared_ptr<Buffer> memory_;     // null: no payload
  size_t payload_bytes_ = 0;           // at its begin
};

}  // namespace thinwire
