// Whether a run ends before its last epoch, as it gets no better.
#pragma once

#include <optional>
#include <string>

#include "google/protobuf/repeated_field.h"
#include "proto/coordinator.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Returns why the run ends after its last evaluation, in words for people; nothing if it goes on.
// `epochs` are complete, `latest` is the epoch of the last evaluation so far. An evaluation is a
// gain if it is better than the last gain before it by more than min_delta; the first one is.
// `config` is resolved.
std::optional<std::string> WhyToStop(const EarlyStopConfig& config,
                                     const google::protobuf::RepeatedPtrField<EpochRecord>& epochs,
                                     const EpochRecord& latest);

}  // namespace thinwire
