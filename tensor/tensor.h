// A dense tensor: shape, element type and shared memory on one device.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/host_device.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace thinwire {

// Memory from a Device, freed with the last reference. The Device outlives it.
class Buffer {
 public:
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(Device* device, size_t bytes);
  // Wraps memory that is neither copied nor freed; `owner` keeps `data` alive (for example a
  // received payload).
  static std::shared_ptr<Buffer> Wrap(Device* device, void* data, size_t bytes,
                                      std::shared_ptr<const void> owner);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device* device() const { return device_; }

 private:
  Buffer(Device* device, void* data, size_t bytes, std::shared_ptr<const void> owner, bool owned)
      : device_(device), data_(data), bytes_(bytes), owner_(std::move(owner)), owned_(owned) {}

  Device* device_;
  void* data_;
  size_t bytes_;
  std::shared_ptr<const void> owner_;
  bool owned_;
};

// A tensor without its ownership, as it crosses the plugin ABI.
struct TensorView {
  void* data = nullptr;
  int64_t dims[Shape::kMaxRank] = {};
  int32_t rank = 0;
  DType dtype = DType::kF32;

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  // Returns the memory as elements of type T.
  template <typename T>
  HOST_DEVICE T* as() const {
    return static_cast<T*>(data);
  }
};

// Returns a view of memory; views do not tell readers from writers.
TensorView ViewOf(const void* data, DType dtype, const Shape& shape);

// A dense tensor; copies share its memory. Who writes to it must be its only user: stages do not
// write to tensors that they have handed on.
class Tensor {
 public:
  Tensor() = default;
  // Allocates a tensor whose elements are not initialised.
  static absl::StatusOr<Tensor> Allocate(Device* device, DType dtype, const Shape& shape);
  // Makes a tensor in `buffer`, which has at least shape.elements() elements of `dtype`.
  Tensor(std::shared_ptr<Buffer> buffer, DType dtype, const Shape& shape);

  bool empty() const { return buffer_ == nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * SizeOf(dtype_); }
  Device* device() const { return buffer_->device(); }
  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  TensorView view() const;

  // Returns the elements; for host tensors of fp32 only.
  absl::Span<float> floats() const;

 private:
  std::shared_ptr<Buffer> buffer_;
  Shape shape_;
  DType dtype_ = DType::kF32;
};

// Returns the view that a linear operation has of a tensor: all leading axes are rows.
TensorView RowsOf(const Tensor& tensor);

}  // namespace thinwire
