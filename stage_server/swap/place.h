// Where tensors wait that a device has no room for.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "tensor/tensor.h"

namespace thinwire {

// Bytes that a SwapPlace has, which outlives them. Their room is free again with this object.
class SwappedBytes {
 public:
  virtual ~SwappedBytes() = default;
  // Returns the bytes in new memory of the device that they came from, which any thread may use.
  virtual absl::StatusOr<std::shared_ptr<Buffer>> Read() = 0;
};

// One thread may write while another reads.
class SwapPlace {
 public:
  virtual ~SwapPlace() = default;

  // Returns whether it is any use to put memory of this device here.
  virtual bool Relieves(const Device& device) const = 0;

  // Copies the first `bytes` bytes of a buffer, which nobody changes meanwhile. ResourceExhausted
  // says what was wanted and what there is.
  virtual absl::StatusOr<std::unique_ptr<SwappedBytes>> Write(const Buffer& memory,
                                                              size_t bytes) = 0;
};

}  // namespace thinwire
