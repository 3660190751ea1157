// The way between two stages, measured: one of them dials the other, which answers.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "proto/stage.pb.h"
#include "transport/boundary_service.h"

namespace thinwire {

// Any thread. Both calls last about two seconds on a fast link, and at most half a minute; an error
// of `stopped`, which is asked again and again, ends them.
class LinkMeter {
 public:
  using Stopped = std::function<absl::Status()>;

  // `boundaries` outlives this object.
  explicit LinkMeter(BoundaryService* boundaries) : boundaries_(*boundaries) {}

  // Listens for the stage before, says so by `listens`, and answers until that has measured.
  // Cancelled if `listens` is false: nobody waits for it.
  absl::Status Answer(const AnswerLinkRequest& request, const std::function<bool()>& listens,
                      const Stopped& stopped) const;

  // Dials the stage that answers. Errors of DialLink and MeasureLink.
  absl::Status Measure(const MeasureLinkRequest& request, const Stopped& stopped,
                       MeasureLinkResponse* response) const;

 private:
  BoundaryService& boundaries_;
};

}  // namespace thinwire
