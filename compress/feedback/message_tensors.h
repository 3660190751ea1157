// Tensors of a message during compensation: their rows, and memory that the next message reuses.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns sample i of x, flat.
inline TensorView RowOf(const Tensor& x, size_t i) {
  const int64_t n = x.elements() / x.shape()[0];
  return ViewOf(static_cast<uint8_t*>(x.data()) + i * n * SizeOf(x.dtype()), x.dtype(), {n});
}

// Returns the samples of x from `first` on.
inline RowsView RowsFrom(const Tensor& x, size_t first) {
  return {RowOf(x, first).data, nullptr, x.dtype()};
}

// Tensor whose memory is allocated once, for the largest message.
class ReusedTensor {
 public:
  // Returns an uninitialised tensor, which shares its memory with those returned before.
  absl::StatusOr<Tensor> Get(Device* device, DType dtype, const Shape& shape) {
    const size_t bytes = shape.elements() * SizeOf(dtype);
    if (buffer_ == nullptr || buffer_->bytes() < bytes) {
      ASSIGN_OR_RETURN(buffer_, Buffer::Allocate(device, bytes));
    }
    return Tensor(buffer_, dtype, shape);
  }

 private:
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace thinwire
