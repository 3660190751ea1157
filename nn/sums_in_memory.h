// Partial sums of parts that are all in one segment, added up as they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "nn/ops.h"
#include "nn/partial_sums.h"
#include "nn/slice_copies.h"

namespace thinwire {

class SumsInMemory final : public PartialSums {
 public:
  explicit SumsInMemory(Ops* ops) : ops_(ops) {}

  absl::StatusOr<Tensor> Add(PassDirection /*direction*/, const std::string& /*layer*/,
                             std::vector<Tensor> partials) override {
    Tensor sum = std::move(partials.front());
    for (size_t i = 1; i < partials.size(); ++i) {
      const Tensor before = sum;
      if (before.buffer().use_count() > 2) {  // somebody keeps it
        ASSIGN_OR_RETURN(sum, Tensor::Allocate(before.device(), before.dtype(), before.shape()));
      }
      RETURN_IF_ERROR(ToStatus(ops_->Add(before.view(), partials[i].view(), sum.view())));
    }
    return sum;
  }

  absl::StatusOr<Tensor> Scatter(PassDirection direction, const std::string& layer,
                                 const PositionSlices& slices,
                                 std::vector<Tensor> partials) override {
    ASSIGN_OR_RETURN(const Tensor sum, Add(direction, layer, std::move(partials)));
    return SlicesOf(sum, slices, ops_);
  }

  absl::StatusOr<Tensor> Gather(PassDirection /*direction*/, const std::string& /*layer*/,
                                const PositionSlices& slices, Tensor rows) override {
    ASSIGN_OR_RETURN(Tensor whole, NewWhole(rows, slices));
    for (int slice = slices.first; slice < slices.end; ++slice) {
      RETURN_IF_ERROR(PutSlice(SliceAt(rows, slices, slice), slice, slices, whole, ops_));
    }
    return whole;
  }

 private:
  Ops* const ops_;
};

}  // namespace thinwire
