// Support of a tensor: which of its entries are not zero. Both ends of a boundary know that of an
// activation when its gradient comes back, so no index needs to say it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Bitmap of a tensor's non-zeros, one bit per element, on the tensor's device. Immutable; copies
// share the memory.
class SupportMap {
 public:
  // Finds the non-zeros of `x`, the activation as the receiver got it. `kernels` are of its device.
  static absl::StatusOr<SupportMap> Of(const Tensor& x, CodecKernels* kernels);

  SupportView view() const;
  int64_t elements() const { return elements_; }
  int64_t count() const { return count_; }  // number of non-zeros

 private:
  std::shared_ptr<Buffer> words_;
  int64_t elements_ = 0;
  int64_t count_ = 0;
};

}  // namespace thinwire
