// Fields of a direction's entry that are set but do not matter, such as `group` of uniform with
// scope tensor. compress/spec_parameters.h knows which parameters matter (see NeedsOf).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns InvalidArgument if a parameter of the codec is set but does not matter, as the user's
// wish would have no effect. The error names the field below `path`, its value and what it needs.
absl::Status CheckNoSilentField(const std::string& path, const DirectionConfig& direction);

// Clears parameters that mattered in `before`, do not matter in `*after` and are not set in `next`,
// which was merged over `before`. So an overlay that makes a field meaningless replaces it.
// `before` and `after` are complete entries of a cut. The fields are cleared in `*entry`, which may
// be only a part of `after`.
void ForgetSilenced(const DirectionConfig& before, const DirectionConfig& next,
                    const DirectionConfig& after, DirectionConfig* entry);

}  // namespace thinwire
