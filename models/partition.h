// The cuts of a model, and the placement of its parts on processes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace thinwire {

// A cut between two blocks.
struct Cut {
  std::string name;  // as the user wrote it: "layer1"
  int block = 0;     // the last block before the cut
};

// Returns "layer1" for "layer1.0"; a block without a dot is its own group.
std::string GroupOf(const std::string& block);

// Returns the cuts with these names. "layer1" cuts after the last block named layer1 or layer1.*;
// "layer1.0" cuts after that block. InvalidArgument for an unknown name (lists all names and the
// most similar one), for a cut after the last block, and for one that occurs twice or out of model
// order.
absl::StatusOr<std::vector<Cut>> NamedCuts(const Model& model,
                                           const std::vector<std::string>& names);

// Returns the `count` cuts that minimise the greatest cost of a stage. A stage's cost is its
// forward and backward FLOPs plus `flops_per_byte` for every fp32 byte that it sends in either
// direction. Of equal solutions the one with the earlier cuts is taken. A cut is named after the
// block before it ("layer1.1"). InvalidArgument if there are too few blocks.
absl::StatusOr<std::vector<Cut>> BalancedCuts(const Model& model, int count, double flops_per_byte);

// Neighbouring segments [first, end).
struct SegmentRange {
  int first = 0, end = 0;
};

// Assignment of segments to stages. A chunk is a run of neighbouring segments that one stage holds
// together; chunk i, in model order, is at stage i mod `stages`.
struct Placement {
  int stages = 1;
  std::vector<SegmentRange> chunks;  // equally many at each stage; together all segments

  int chunks_per_stage() const { return static_cast<int>(chunks.size()) / stages; }
  // Returns the segments of chunk number `chunk` (from 0) of `stage`.
  const SegmentRange& At(int stage, int chunk) const { return chunks[chunk * stages + stage]; }
  int ChunkOf(int segment) const;
  int StageOf(int segment) const { return ChunkOf(segment) % stages; }
};

// Returns a placement of the cuts + 1 segments with one chunk for each of `stages` processes,
// balanced by FLOPs. InvalidArgument unless 1 <= stages <= cuts + 1.
absl::StatusOr<Placement> BalancedPlacement(const Model& model, const std::vector<Cut>& cuts,
                                            int stages);

// Returns a placement in which each segment is a chunk, so that stages take turns. InvalidArgument
// unless the number of segments is a multiple of `stages`, at least twice it, and `stages` is at
// least 1.
absl::StatusOr<Placement> InterleavedPlacement(const std::vector<Cut>& cuts, int stages);

// Blocks [first, last) of one segment, or of all segments of a range.
struct BlockRange {
  int first = 0, last = 0;
};
BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts, int segment);
BlockRange SegmentBlocks(const Model& model, const std::vector<Cut>& cuts,
                         const SegmentRange& segments);
// Returns all blocks of a stage, in model order.
std::vector<int> StageBlocks(const Model& model, const std::vector<Cut>& cuts,
                             const Placement& placement, int stage);

}  // namespace thinwire
