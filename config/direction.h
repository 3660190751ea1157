// Defaults and checks of one direction of a cut.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// `path` is where it stands in the file. InvalidArgument names the field, the value met and what is
// wanted.
absl::Status ResolveDirection(const std::string& path, bool gradient, DirectionConfig* direction);

// A cut's own entry laid over the general one, of whose fields those are forgotten that the own
// choices replace or leave without a say.
DirectionConfig Overlaid(const DirectionConfig& general, const DirectionConfig& own);

// What both directions of a cut and the rest of the experiment must agree on; its `compression` is
// resolved but for that. The error names the cut.
absl::Status CheckCompressionAt(const Experiment& experiment, const std::string& cut);

}  // namespace thinwire
