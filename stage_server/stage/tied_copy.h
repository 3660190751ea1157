// One of the two copies of a tied weight (models/tied_weight.h), at its end of the tied cut. Once a
// step both copies exchange their gradients, and each then has the sum.
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
  // Makes a copy. `end` is a TiedEnd, whose direction says which copy it is. `weight` is that copy;
  // it outlives this object, as do stage, backend and capture. `link` was made with LinkOptionsOf.
  static absl::StatusOr<std::unique_ptr<TiedCopy>> New(const StageSpec& stage,
                                                       const CutEndSpec& end,
                                                       const Backend& backend,
                                                       const Parameter* weight, Capture* capture,
                                                       std::unique_ptr<Link> link);

  // Sends this copy's gradient of the step that `work` names; never waits.
  absl::Status Send(const Work& work);
  // Waits for the other copy's gradient, after Send, and sets this copy's to the sum of the
  // embedding's and the head's. Both summands are taken as a codec leaves them, so the sum is the
  // same number at both ends.
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
  // Returns the work of its message, whose samples are the rows of the weight.
  Work MessageOf(const Work& work) const;

  const StageSpec& stage_;
  const bool is_embedding_;
  const Backend& backend_;
  const Parameter& weight_;
  const std::unique_ptr<CutEnd> end_;
  Tensor sent_;  // between Send and Receive: what the other end uses of this gradient
};

}  // namespace thinwire
