// Where a model is cut, and which process holds which part.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace thinwire {

struct Cut {
  std::string name;  // as the user wrote it: "layer1"
  int block = 0;     // the last block before the cut
};

// "layer1" cuts after the last block named layer1 or layer1.*; "layer1.0" after that block.
// InvalidArgument for an unknown name (with the names there are, and the nearest), a cut after
// the last block, one that stands twice or out of model order.
absl::StatusOr<std::vector<Cut>> NamedCuts(const Model& model,
                                           const std::vector<std::string>& names);

// The `count` cuts that minimise the greatest stage cost, where a stage costs its forward and
// backward FLOPs plus `flops_per_byte` for every fp32 boundary byte it sends in both directions.
// Ties go to the earlier cuts. A cut is named after the block before it ("layer1.1").
// InvalidArgument when there are too few blocks.
absl::StatusOr<std::vector<Cut>> BalancedCuts(const Model& model, int count, double flops_per_byte);

// Neighbouring segments (cuts + 1 of them) for `stages` processes, balanced by FLOPs: the first
// segment of each stage. InvalidArgument unless 1 <= stages <= cuts + 1.
absl::StatusOr<std::vector<int>> StageStarts(const Model& model, const std::vector<Cut>& cuts,
                                             int stages);

// Blocks [first, last) of segment i.
struct BlockRange {
  int first = 0, last = 0;
};
BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts, int segment);

}  // namespace thinwire
