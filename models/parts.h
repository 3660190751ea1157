// Tensor-parallel parts of a model (Shoeybi et al., Megatron-LM, 2019). The heads of an attention
// and the hidden features of an MLP are divided: the linear layer before them by rows of its
// weight, the one behind them by columns. What the parts make of an input is added up, in ascending
// order.
//
// The division belongs to the model, so that results do not depend on which machine computes which
// parts. Parameters of a part are slices of whole ones, whose initial values they have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"

namespace thinwire {

// Name of the sums, where cuts have names.
inline constexpr char kSums[] = "sums";

// Returns the model with its attentions and MLPs divided into `parts`: each linear layer, attention
// or activation, and linear layer that follow one another become a kSum, which is called as the
// last of them. The last of several blocks, which makes the logits, stays whole. InvalidArgument
// names the layer, the number that `parts` does not divide, and both; or says that there is nothing
// to divide.
absl::StatusOr<Model> DividedIntoParts(Model model, int64_t parts);

// Returns the model with a learned bottleneck at each sum of its blocks from `first` on, counted
// among those with sums: each part ends with a linear encoder of its own to `width` features, and a
// linear decoder follows the sum (the AE of Bian et al., MLSys 2024). Codes add up exactly.
// InvalidArgument names a sum that has no more features than that.
absl::StatusOr<Model> WithCodesOfSums(Model model, int64_t width, int first);

// Returns the name of the sum in the model whose learned code has the parameter of that name; empty
// for a parameter of no code.
std::string SumOfCode(const Model& model, const std::string& parameter);

// Removes the parts outside of [first, end) from the blocks' sums, and the slices of positions that
// are not theirs.
void KeepParts(int first, int end, std::vector<BlockSpec>* blocks);

// Returns the sums of a block, in model order.
std::vector<const LayerSpec*> SumsOf(const BlockSpec& block);

}  // namespace thinwire
