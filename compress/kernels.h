// The codec kernels of one backend: one entry per direction of a codec, each with a CPU twin
// (the definition) and a CUDA twin. Pure-virtual and plain data: backends may be plugins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Payload memory is host memory. Encoders check that `capacity` suffices, write the payload's
// length to *bytes and fail with InvalidArgument on NaN or infinity (except the casts, which
// carry them). Decoders treat `payload` as hostile. Any thread, several at once.
class CodecKernels {
 public:
  virtual ~CodecKernels() = default;

  // `to` is the element type on the wire; narrowing rounds to nearest even.
  virtual Error CastEncode(const TensorView& x, DType to, uint8_t* payload, size_t capacity,
                           size_t* bytes) = 0;
  virtual Error CastDecode(const uint8_t* payload, size_t bytes, DType from,
                           const TensorView& x) = 0;

  virtual Error UniformEncode(const TensorView& x, const CodecSpec& spec, uint64_t random_key,
                              uint8_t* payload, size_t capacity, size_t* bytes) = 0;
  virtual Error UniformDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                              const TensorView& x) = 0;

  virtual Error TopKEncode(const TensorView& x, const CodecSpec& spec, uint8_t* payload,
                           size_t capacity, size_t* bytes) = 0;
  virtual Error TopKDecode(const uint8_t* payload, size_t bytes, const CodecSpec& spec,
                           const TensorView& x) = 0;

  // ||x - y||^2, ||x||^2, ||y||^2 and <x, y> in fp64, and the non-zeros of x and of y.
  struct Sums {
    double difference = 0, x = 0, y = 0, product = 0;
    int64_t nonzeros_x = 0, nonzeros_y = 0;
  };
  virtual Error Compare(const TensorView& x, const TensorView& y, Sums* sums) = 0;
};

}  // namespace thinwire
