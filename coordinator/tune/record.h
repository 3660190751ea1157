// tune.json: what a tune has found out so far, from which the same command goes on.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "proto/tune.pb.h"

namespace thinwire {

// DIR/tune.json, or a report with `task` alone where there is none yet. InvalidArgument where it is
// of another task, naming the first field that differs with both values, where it is no report, or
// where the folder holds something else.
absl::StatusOr<TuneReport> OpenTune(const std::string& dir, const TuneTask& task);
absl::Status WriteTune(const std::string& dir, const TuneReport& report);

TuneSpeeds RecordOf(const Speeds& speeds);
Speeds SpeedsFrom(const TuneSpeeds& record);

}  // namespace thinwire
