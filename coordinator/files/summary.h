// The summary of a run, read back.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// The JSON that a run writes into `message`; fields of another build's are left aside.
// InvalidArgument says that what `place` names is none, and why.
absl::Status FromJson(const std::string& text, const std::string& place,
                      google::protobuf::Message* message);

// summary.json of the run in `dir`. NotFound where there is none; errors of FromJson.
absl::StatusOr<Summary> ReadSummary(const std::string& dir);

}  // namespace thinwire
