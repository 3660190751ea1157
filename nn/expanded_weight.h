// Memory of a segment in which weights that are held in few bits become numbers, one weight at a
// time.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "tensor/tensor.h"

namespace thinwire {

class ExpandedWeight {
 public:
  // `compute` is the type of the products. Device and ops outlive this object.
  ExpandedWeight(Device* device, Ops* ops, DType compute)
      : device_(device), ops_(ops), compute_(compute) {}

  // Allocates memory for the largest of these parameters that is held in few bits, and none where
  // there is no such parameter.
  absl::Status Reserve(absl::Span<const Parameter> parameters);

  // Returns a weight of those in the compute type, row by row. It stands there until the next call;
  // a weight that is held in that type is returned where it is.
  absl::StatusOr<const void*> Of(const Parameter& weight);

 private:
  Device* const device_;
  Ops* const ops_;
  const DType compute_;
  Tensor memory_;
};

}  // namespace thinwire
