// One of the two copies of a basis that a cut's bottleneck learns (models/bottleneck.h), at its end
// of the cut. Once a step both copies exchange their gradients, and each then has the sum.
#pragma once

#include "absl/status/status.h"
#include "nn/segment/segment.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

class BasisCopy {
 public:
  // `end`, `basis` and `backend` outlive it.
  BasisCopy(CutEnd* end, const Parameter* basis, const Backend& backend)
      : end_(end), basis_(basis), backend_(backend) {}

  // Sends this copy's gradient of the step that `work` names; never waits.
  absl::Status Send(const Work& work) const;
  // Waits for the other copy's gradient and adds it. Called after Send.
  absl::Status Receive(const Work& work) const;

  const CutEnd* end() const { return end_; }

 private:
  CutEnd* end_;
  const Parameter* basis_;
  const Backend& backend_;
};

}  // namespace thinwire
