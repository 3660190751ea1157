// One of the two copies of a tied weight (models/tied_weight.h), at its end of the tied cut: once a
// step it hands its gradient to the other copy and becomes, as that one does, the sum of both.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/segment/segment.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

class TiedCopy {
 public:
  // `end` is a TiedEnd, whose direction says which copy it is; `weight` is that copy and outlives
  // this object, as stage, backend and capture do. `link` was made with LinkOptionsOf.
  static absl::StatusOr<std::unique_ptr<TiedCopy>> New(const StageSpec& stage,
                                                       const CutEndSpec& end,
                                                       const Backend& backend,
                                                       const Parameter* weight, Capture* capture,
                                                       std::unique_ptr<Link> link);

  // Sends this copy's gradient of the step of `work`; never waits.
  absl::Status Send(const Work& work);
  // Waits for the other one, behind Send: the gradient is now the embedding's plus the head's, with
  // what a codec made of either, so that it is the same number at both ends.
  absl::Status Receive(const Work& work);

  CutEnd& end() { return *end_; }

 private:
  TiedCopy(const StageSpec& stage, bool is_embedding, const Backend& backend,
           const Parameter* weight, std::unique_ptr<CutEnd> end)
      : stage_(stage),
        is_embedding_(is_embedding),
        backend_(backend),
        weight_(*weight),
        end_(std::move(end)) {}
  // That of its message: the rows of the weight are its samples.
  Work MessageOf(const Work& work) const;

  const StageSpec& stage_;
  const bool is_embedding_;
  const Backend& backend_;
  const Parameter& weight_;
  const std::unique_ptr<CutEnd> end_;
  Tensor sent_;  // what the other end uses of it, between Send and Receive
};

}  // namespace thinwire
