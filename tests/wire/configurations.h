// Lists the runs that the decoder is tested with: every codec, every compensation, and whatever
// else changes a message.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tests/wire/recorded_training.h"

namespace thinwire {

absl::StatusOr<std::vector<RecordedRun>> AllRecordedRuns();

}  // namespace thinwire
