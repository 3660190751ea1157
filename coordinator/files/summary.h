// Reading of a run's summary.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Types of events: of a run that early_stop has ended, and of one that went on after a loss, from a
// checkpoint or with what its stages had kept.
inline constexpr char kStopped[] = "stopped";
inline constexpr char kRestarted[] = "restarted";
inline constexpr char kWentOn[] = "went_on";

// Parses a run's JSON into `message`; unknown fields, from other builds, are ignored.
// InvalidArgument says that what `place` names is not such JSON, and why.
absl::Status FromJson(const std::string& text, const std::string& place,
                      google::protobuf::Message* message);

// Reads summary.json of the run in `dir`. NotFound if there is none; errors of FromJson.
absl::StatusOr<Summary> ReadSummary(const std::string& dir);

}  // namespace thinwire
