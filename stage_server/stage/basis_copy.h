// One of the two copies of a basis that a cut's bottleneck learns (models/bottleneck.h), at its end
// of the cut: once a step it hands its gradient to the other copy and takes, as that one does, the
// sum of both.
#pragma once

#include "absl/status/status.h"
#include "nn/segment/segment.h"
#include "stage_server/stage/cut_end.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

class BasisCopy {
 public:
  // `end` and `basis` outlive it, as the backend does.
  BasisCopy(CutEnd* end, const Parameter* basis, const Backend& backend)
      : end_(end), basis_(basis), backend_(backend) {}

  // Sends this copy's gradient of the step of `work`; never waits.
  absl::Status Send(const Work& work) const;
  // Waits for the other one, behind Send, and adds it.
  absl::Status Receive(const Work& work) const;

  const CutEnd* end() const { return end_; }

 private:
  CutEnd* end_;
  const Parameter* basis_;
  const Backend& backend_;
};

}  // namespace thinwire
