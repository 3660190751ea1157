// Reading and writing of tune.json: what a tune has found out so far, from which the same command
// continues.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/plan/speeds.h"
#include "proto/tune.pb.h"

namespace thinwire {

// Reads DIR/tune.json; where there is none, returns a report with `task` alone. InvalidArgument if
// the file is of another task (names the first field that differs, with both values), if it is no
// report, or if the folder holds something else.
absl::StatusOr<TuneReport> OpenTune(const std::string& dir, const TuneTask& task);
// Writes `report` to DIR/tune.json.
absl::Status WriteTune(const std::string& dir, const TuneReport& report);

// Converts speeds to their form in tune.json, and back.
TuneSpeeds RecordOf(const Speeds& speeds);
Speeds SpeedsFrom(const TuneSpeeds& record);

}  // namespace thinwire
