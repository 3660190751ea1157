#include "coordinator/probe/model_layout.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/specs.h"

namespace thinwire {
namespace {

// A weight and its copy at one stage have one tensor.
void AddName(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

}  // namespace

absl::StatusOr<ModelLayout> LayoutOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const auto& blocks = partition.model.blocks;
  ModelLayout layout;
  for (size_t segment = 0; segment <= partition.cuts.size(); ++segment) {
    const int at = static_cast<int>(segment);
    const BlockRange range = SegmentBlocks(partition.model, partition.cuts, at);
    const std::string &first = blocks[range.first].name, &last = blocks[range.last - 1].name;
    layout.segments.push_back(first == last ? first : absl::StrCat(first, " to ", last));
    const size_t stage = layout.at_stage.size();
    if (stage < partition.stage_starts.size() && partition.stage_starts[stage] == at) {
      layout.at_stage.emplace_back();
    }
    size_t elements = 0;
    for (int i = range.first; i < range.last; ++i) {
      for (const ParameterSpec& parameter : Parameters(blocks[i])) {
        const bool is_copy = !parameter.tied_to.empty();
        AddName(is_copy ? parameter.tied_to : parameter.name, &layout.at_stage.back());
        if (!parameter.trainable || is_copy) continue;
        const auto own = static_cast<size_t>(parameter.shape.elements());
        layout.ranges[parameter.name] = {segment, elements, own};
        elements += own;
      }
    }
    layout.trained_elements.push_back(elements);
  }
  return layout;
}

absl::StatusOr<std::vector<Safetensors>> SharesOf(const ModelLayout& layout,
                                                  const std::vector<StoredTensor>& tensors) {
  std::map<std::string_view, const StoredTensor*> all;
  for (const StoredTensor& tensor : tensors) all[tensor.name] = &tensor;
  auto left = all;
  std::vector<Safetensors> shares;
  for (const std::vector<std::string>& names : layout.at_stage) {
    Safetensors share;
    for (const std::string& name : names) {
      const auto found = all.find(name);
      if (found == all.end()) continue;
      share.tensors.push_back(*found->second);
      left.erase(name);
    }
    shares.push_back(std::move(share));
  }
  if (left.empty()) return shares;
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", left.begin()->second->name, " is no parameter of the model"));
}

}  // namespace thinwire
