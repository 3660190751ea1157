// Fields that choose one of several things (a direction's codec, the name of a learning-rate
// schedule, the kind of a layer), and which other fields of the message belong to which choice.
// Works on DirectionConfig, BottleneckConfig, LrScheduleConfig, OptimizerConfig, ModelConfig and
// LayerConfig.
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
// if `next` chooses something else, the fields that belong to the former choice are cleared. And of
// a direction's `ratio` and `k`, the one that `next` alone sets replaces the other.
void ForgetReplaced(const google::protobuf::Message& next, google::protobuf::Message* message);

}  // namespace thinwire
