// Sequence parallelism beside tensor-parallel parts (Korthikanti et al., MLSys 2023): norms,
// dropouts, additions and biases between divided layers work on slices of positions, one for each
// part. Divided layers and all others have whole samples.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// Returns the divided model with slices of positions, as many as it has parts. They are of runs of
// neighbouring layers between two cuts, in blocks with sums: sums over positions, norms, dropouts,
// and residual layers of these. A kToSlices begins such a run, a kToWhole ends it. InvalidArgument
// names a block with fewer positions than slices, or says that there is no such run.
absl::StatusOr<Model> WithSlicedPositions(Model model, const std::vector<Cut>& cuts, int slices);

}  // namespace thinwire
