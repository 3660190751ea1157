#include "coordinator/probe/model_layout.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/specs.h"

namespace thinwire {

absl::StatusOr<ModelLayout> LayoutOf(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  const auto& blocks = partition.model.blocks;
  ModelLayout layout;
  for (size_t segment = 0; segment <= partition.cuts.size(); ++segment) {
    const BlockRange range =
        SegmentBlocks(partition.model, partition.cuts, static_cast<int>(segment));
    const std::string &first = blocks[range.first].name, &last = blocks[range.last - 1].name;
    layout.segments.push_back(first == last ? first : absl::StrCat(first, " to ", last));
    size_t elements = 0;
    for (int i = range.first; i < range.last; ++i) {
      for (const ParameterSpec& parameter : Parameters(blocks[i])) {
        if (!parameter.is_trained() || !parameter.tied_to.empty()) continue;
        const auto own = static_cast<size_t>(parameter.shape.elements());
        layout.ranges[parameter.name] = {segment, elements, own};
        elements += own;
      }
    }
    layout.trained_elements.push_back(elements);
  }
  return layout;
}

}  // namespace thinwire
