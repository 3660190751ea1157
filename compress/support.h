// Which entries of a tensor are not zero: what both ends of a boundary know of an activation when
// its gradient comes back, so that no index needs to say it.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "compress/kernels.h"
#include "tensor/tensor.h"

namespace thinwire {

// Immutable. Copies share the memory: one bit per element, on the tensor's device.
class SupportMap {
 public:
  // `x`: as the receiver got it. `kernels` are of its device.
  static absl::StatusOr<SupportMap> Of(const Tensor& x, CodecKernels* kernels);

  SupportView view() const;
  int64_t elements() const { return elements_; }
  int64_t count() const { return count_; }  // of those that are not zero

 private:
  std::shared_ptr<Buffer> words_;
  int64_t elements_ = 0;
  int64_t count_ = 0;
};

}  // namespace thinwire
