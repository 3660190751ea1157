// Joins neighbouring stages in one process.
#pragma once

#include "absl/status/status.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Joins two stages, at the cut between them, with links in memory.
absl::Status Join(LocalStage* upstream, LocalStage* downstream);

// Joins the first and the last stage at the tied cut in the same way.
absl::Status JoinTied(LocalStage* first, LocalStage* last);

// Joins one stage of two carriers likewise; does nothing with two stages.
absl::Status JoinPeers(LocalStage* lower, LocalStage* higher);

}  // namespace thinwire
