// Defaults and checks of one direction of a cut.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Fills in defaults and checks all values. `path` is the entry's place in the file. InvalidArgument
// names the field, the value met and what is wanted.
absl::Status ResolveDirection(const std::string& path, bool gradient, DirectionConfig* direction);

// Returns the general entry with a cut's own entry merged over it. Fields of the general entry are
// dropped if the own entry's choices replace them or make them meaningless.
DirectionConfig Overlaid(const DirectionConfig& general, const DirectionConfig& own);

// Checks what both directions of a cut and the rest of the experiment must agree on. `compression`
// must be resolved except for that. The error names the cut.
absl::Status CheckCompressionAt(const Experiment& experiment, const std::string& cut);

}  // namespace thinwire
