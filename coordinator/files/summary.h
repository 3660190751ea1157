// Reading of a run's summary.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Types of events: of a run that a user resumed, of one that early_stop has ended, of one that went
// on from a checkpoint after a loss; and of one that went on with what its stages had kept, after a
// loss, when servers had joined, when one had left in order, or to deal replicas by speed.
inline constexpr char kResumed[] = "resumed";
inline constexpr char kStopped[] = "stopped";
inline constexpr char kRestarted[] = "restarted";
inline constexpr char kWentOn[] = "went_on";
inline constexpr char kJoined[] = "joined";
inline constexpr char kLeft[] = "left";
inline constexpr char kDealt[] = "dealt";
// Reasons of events that are no loss.
inline constexpr char kReasonJoins[] = "joins";
inline constexpr char kReasonEnds[] = "ends";
inline constexpr char kReasonSpeeds[] = "speeds";

// Returns whether the event is of a run that went on with what its stages had kept.
inline bool HasGoneOn(const RunEvent& event) {
  return event.type() == kWentOn || event.type() == kJoined || event.type() == kLeft ||
         event.type() == kDealt;
}

// Parses a run's JSON into `message`; unknown fields, from other builds, are ignored.
// InvalidArgument says that what `place` names is not such JSON, and why.
absl::Status FromJson(const std::string& text, const std::string& place,
                      google::protobuf::Message* message);

// Reads summary.json of the run in `dir`. NotFound if there is none; errors of FromJson.
absl::StatusOr<Summary> ReadSummary(const std::string& dir);

}  // namespace thinwire
