// The way back from a codec's specification to what an experiment says of it.
#pragma once

#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// What CodecFrom, once the experiment is resolved, turns into `spec` again. InvalidArgument for
// plugin: a specification does not say which library it is.
absl::StatusOr<DirectionConfig> ConfigOf(const CodecSpec& spec);

}  // namespace thinwire
