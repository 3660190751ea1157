// The runs that the decoder is shown: every codec, every compensation, what else changes a message.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "tests/wire/recorded_training.h"

namespace thinwire {

absl::StatusOr<std::vector<RecordedRun>> AllRecordedRuns();

}  // namespace thinwire
