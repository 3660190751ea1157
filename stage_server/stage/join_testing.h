// Neighbouring stages in one process.
#pragma once

#include "absl/status/status.h"
#include "stage_server/stage/local_stage.h"

namespace thinwire {

// Joins the two stages at the cut between them with links in memory.
absl::Status Join(LocalStage* upstream, LocalStage* downstream);

// The same for the tied cut between the first and the last stage.
absl::Status JoinTied(LocalStage* first, LocalStage* last);

}  // namespace thinwire
