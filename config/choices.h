// Messages with a field that chooses one of several things (alternatives.h): their checks and
// defaults, and what one message laid over another replaces.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace thinwire {

// Fills the choice and the fields that belong to it where they are absent and have a default.
// InvalidArgument names `path`: an unknown choice, or none where it is required; a field that is
// set and belongs to other choices only; an absent one that is required.
absl::Status ResolveChoice(const std::string& path, google::protobuf::Message* message);

// Prepares `*message` for being overlaid by `next`: a new choice starts from its own defaults, so
// if `next` chooses something else, the fields that belong to the former choice are cleared. Where
// `next` sets one of a direction's `ratio` and `k`, it replaces the other.
void ForgetReplaced(const google::protobuf::Message& next, google::protobuf::Message* message);

}  // namespace thinwire
