#include "tensor/tensor.h"

#include <algorithm>
#include <cassert>

#include "base/status.h"

namespace thinwire {

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Allocate(Device* device, size_t bytes) {
  void* data = nullptr;
  RETURN_IF_ERROR(ToStatus(device->Allocate(bytes, &data)));
  return std::shared_ptr<Buffer>(new Buffer(device, data, bytes, nullptr, /*owned=*/true));
}

std::shared_ptr<Buffer> Buffer::Wrap(Device* device, void* data, size_t bytes,
                                     std::shared_ptr<const void> owner) {
  return std::shared_ptr<Buffer>(
      new Buffer(device, data, bytes, std::move(owner), /*owned=*/false));
}

Buffer::~Buffer() {
  if (owned_) device_->Free(data_);
}

absl::StatusOr<Tensor> Tensor::Allocate(Device* device, DType dtype, const Shape& shape) {
  ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(device, shape.elements() * SizeOf(dtype)));
  return Tensor(std::move(buffer), dtype, shape);
}

Tensor::Tensor(std::shared_ptr<Buffer> buffer, DType dtype, const Shape& shape)
    : buffer_(std::move(buffer)), shape_(shape), dtype_(dtype) {
  assert(buffer_->bytes() >= bytes());
}

TensorView ViewOf(const void* data, DType dtype, const Shape& shape) {
  TensorView view;
  view.data = const_cast<void*>(data);
  view.dtype = dtype;
  view.rank = shape.rank();
  std::copy(shape.begin(), shape.end(), view.dims);
  return view;
}

TensorView RowsOf(const Tensor& tensor) {
  const int64_t features = tensor.shape()[tensor.shape().rank() - 1];
  return ViewOf(tensor.data(), tensor.dtype(), {tensor.elements() / features, features});
}

TensorView Tensor::view() const { return ViewOf(data(), dtype_, shape_); }

absl::Span<float> Tensor::floats() const {
  assert(dtype_ == DType::kF32 && (empty() || device()->is_host()));
  return absl::MakeSpan(static_cast<float*>(data()), elements());
}

}  // namespace thinwire
