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

// Neighbouring segments [first, end).
struct SegmentRange {
  int first = 0, end = 0;
};

// Which stage holds which segments. A chunk is neighbouring segments that one stage holds together;
// chunk i, in model order, is at stage i mod `stages`.
struct Placement {
  int stages = 1;
  std::vector<SegmentRange> chunks;  // equally many at each stage; together all segments

  int chunks_per_stage() const { return static_cast<int>(chunks.size()) / stages; }
  // The segments of the chunk that is number `chunk` at `stage`, from 0.
  const SegmentRange& At(int stage, int chunk) const { return chunks[chunk * stages + stage]; }
  int ChunkOf(int segment) const;
  int StageOf(int segment) const { return ChunkOf(segment) % stages; }
};

// One chunk for each of `stages` processes, of the cuts + 1 segments, balanced by FLOPs.
// InvalidArgument unless 1 <= stages <= cuts + 1.
absl::StatusOr<Placement> BalancedPlacement(const Model& model, const std::vector<Cut>& cuts,
                                            int stages);

// Each segment a chunk, so that stages take turns on the segments. InvalidArgument unless the cuts
// make a multiple of the stages, two of them at least, or for less than one stage.
absl::StatusOr<Placement> InterleavedPlacement(const std::vector<Cut>& cuts, int stages);

// Blocks [first, last) of segment i, or of all segments of a range.
struct BlockRange {
  int first = 0, last = 0;
};
BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts, int segment);
BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts,
                         const SegmentRange& segments);
// All blocks of a stage, in model order.
std::vector<int> StageBlocks(const Model& model, const std::vector<Cut>& cuts,
                             const Placement& placement, int stage);

}  // namespace thinwire
