// Fields of a direction's entry that are set and have no say, as `group` of uniform with scope
// tensor. Which parameters have one is known to compress/spec_parameters.h (see NeedsOf).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// InvalidArgument if a parameter of the codec is set and has no say, naming the field below `path`,
// its value and what it needs: what nobody reads would be a wish that nobody grants.
absl::Status CheckNoSilentField(const std::string& path, const DirectionConfig& direction);

// Clears the parameters of `*after` that have a say in `before`, lost it and are not in `next`,
// which was laid over it: an overlay that takes a field's say away replaces it. `before` and
// `after` are whole entries as a cut has them; `*entry`, in which is cleared, may be a part of
// `after`.
void ForgetSilenced(const DirectionConfig& before, const DirectionConfig& next,
                    const DirectionConfig& after, DirectionConfig* entry);

}  // namespace thinwire
