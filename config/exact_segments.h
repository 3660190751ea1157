// Segments of which replicas may exchange exactly what they learn, because their exchange lengthens
// no step (Song et al., "Optimus-CC", ASPLOS 2023). The others are compressed.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/specs.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Most by which the exact exchange of all these segments together may lengthen a step, as a share
// of it.
inline constexpr double kMostLonger = 0.01;

// Returns the seconds of a step in which these segments, by number, are exchanged exactly and all
// others as the experiment's general entries say.
using SecondsOfExact = std::function<absl::StatusOr<double>(const std::set<int>& exact)>;

// Finds the segments, of so many, whose exact exchange lengthens a step by at most kMostLonger.
// They are tried from the last one, whose backward passes end first, to the first.
absl::StatusOr<std::set<int>> ExactSegments(int segments, const SecondsOfExact& seconds);

// Gives these segments entries with codec none; `names` are those of all segments.
void SetExact(const std::vector<std::string>& names, const std::set<int>& exact,
              ReplicasConfig* replicas);

// Replaces `replicas.stages: auto` and `link_mbit` by the entries of ExactSegments. It assumes
// machines that compute 100 GFLOP/s, codecs that take no time, and at each machine one segment of
// one replica, so the choice follows from the experiment alone. InvalidArgument names a codec whose
// payloads are not known, too many replicas or a rate that is out of range. The rest of
// `experiment` must be resolved.
absl::Status ChooseExactSegments(const Partition& partition, Experiment* experiment);

}  // namespace thinwire
