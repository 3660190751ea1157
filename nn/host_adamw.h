// AdamW on the host of a device (KARMA; Wahib et al., SC 2020): its means lie in the host's memory.
// Gradients come to the host and steps go to the device, which takes them off its values. The bits
// are those of an update on the device, as each operation is rounded by itself on both.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace thinwire {

// Not thread-safe.
class HostAdamW {
 public:
  // All pointers outlive it; `host_ops` computes on the host.
  static absl::StatusOr<std::unique_ptr<HostAdamW>> New(Device* device, Ops* ops, Ops* host_ops);

  // Updates the parameters of `update`, whose means are memory of the device's host(), but for
  // their `narrow`. It waits for the device. `update` has no clip_factor.
  absl::Status Update(const AdamWUpdate& update);

 private:
  HostAdamW(Device* device, Ops* ops, Ops* host_ops)
      : device_(device), ops_(ops), host_ops_(host_ops) {}
  absl::Status Update(const AdamWUpdate& update, const AdamWParameter& parameter);
  // Replaces the gradients of `n` elements from `begin` on by minus the steps to be made.
  absl::Status ToSteps(const AdamWUpdate& update, const AdamWParameter& parameter, int64_t begin,
                       int64_t n);

  Device* const device_;
  Ops* const ops_;
  Ops* const host_ops_;
  Tensor gradients_, steps_;  // of some elements, on the host
};

}  // namespace thinwire
