// Blocks that are not trained, which keep their parameters. Before the first trained block nobody
// wants a gradient: what stands there goes forward only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "models/partition.h"

namespace thinwire {

// Returns the model with the layers of the named blocks frozen: `names` are those of blocks, or of
// groups of blocks, as cuts have them. Where the embedding is frozen, so is the head's weight that
// is tied to it. InvalidArgument for an unknown name, for a tied head whose embedding is not
// frozen, and if nothing is left to train.
absl::StatusOr<Model> WithFrozen(Model model, const std::vector<std::string>& names);

// Returns whether the block is frozen, and no layer that was added to it, as that of a bottleneck,
// is trained.
bool IsFrozen(const BlockSpec& block);

// Returns the index of the first block that is not frozen.
int FirstTrainedBlock(const Model& model);

// Returns whether backward passes go through a layer of a block. They do not before the first
// trained block, nor where this one begins with slices of samples, whose gradient nobody wants.
bool GoesBack(const Model& model, int block, const LayerSpec& layer);

// Returns whether gradients cross the cut: whether something before it is trained.
inline bool HasGradients(const Model& model, const Cut& cut) {
  return FirstTrainedBlock(model) <= cut.block;
}

// Returns the FLOPs of a block's backward pass for one sample: twice those of its forward pass,
// less what only gradients of frozen weights need. Before the first trained block there is no such
// pass.
double BackwardFlops(const Model& model, int block);

}  // namespace thinwire
