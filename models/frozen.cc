#include "models/frozen.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text.h"

namespace thinwire {
namespace {

std::vector<std::string> NamesOfBlocks(const Model& model) {
  std::vector<std::string> names;
  for (const BlockSpec& block : model.blocks) {
    const std::string group = GroupOf(block.name);
    if (names.empty() || std::find(names.begin(), names.end(), group) == names.end()) {
      names.push_back(group);
    }
    if (group != block.name) names.push_back(block.name);
  }
  return names;
}

void Freeze(std::vector<LayerSpec>* layers) {
  ForEachLayer(*layers, [](LayerSpec& layer) { layer.frozen = true; });
}

absl::Status FreezeNamed(const std::string& name, Model* model) {
  bool is_known = false;
  for (BlockSpec& block : model->blocks) {
    if (block.name != name && GroupOf(block.name) != name) continue;
    is_known = true;
    Freeze(&block.layers);
  }
  if (is_known) return absl::OkStatus();
  const std::vector<std::string> names = NamesOfBlocks(*model);
  return absl::InvalidArgumentError(absl::StrCat("model ", model->name, " has no block '", name,
                                                 "': did you mean ", NearestName(name, names),
                                                 "? There are ", absl::StrJoin(names, ", ")));
}

// Freezes the head's weight with the embedding's.
absl::Status FreezeTied(Model* model) {
  const bool freezes_embedding = model->blocks.front().layers.front().frozen;
  absl::Status status;
  ForEachLayer(model->blocks.back().layers, [&](LayerSpec& layer) {
    if (layer.tied_to.empty()) return;
    if (layer.frozen && !freezes_embedding) {
      status = absl::InvalidArgumentError(absl::StrCat(
          "block '", model->blocks.back().name, "' is frozen, but its ", layer.name,
          " is the weight of the embedding: want '", model->blocks.front().name, "' frozen too"));
    }
    layer.frozen = freezes_embedding;
  });
  return status;
}

}  // namespace

absl::StatusOr<Model> WithFrozen(Model model, const std::vector<std::string>& names) {
  if (names.empty()) return model;
  for (const std::string& name : names) RETURN_IF_ERROR(FreezeNamed(name, &model));
  RETURN_IF_ERROR(FreezeTied(&model));
  if (TrainableParameters(model) > 0) return model;
  return absl::InvalidArgumentError(absl::StrCat(absl::StrJoin(names, ", "),
                                                 " leave nothing to train in model ", model.name,
                                                 ": want at least one block with parameters"));
}

bool IsFrozen(const BlockSpec& block) {
  bool has_frozen = false, has_others = false;
  ForEachLayer(block.layers, [&](const LayerSpec& layer) {
    has_frozen = has_frozen || layer.frozen;
    const bool is_frozen = layer.frozen && layer.adapters.empty();
    has_others = has_others || (!is_frozen && HasName(layer.kind));
  });
  return has_frozen && !has_others;
}

int FirstTrainedBlock(const Model& model) {
  const auto first = std::find_if_not(model.blocks.begin(), model.blocks.end(),
                                      [](const BlockSpec& block) { return IsFrozen(block); });
  return static_cast<int>(first - model.blocks.begin());
}

bool GoesBack(const Model& model, int block, const LayerSpec& layer) {
  const int first = FirstTrainedBlock(model);
  if (block != first || first == 0) return block >= first;
  return layer.kind != LayerKind::kToSlices || &layer != &model.blocks[block].layers.front();
}

double BackwardFlops(const Model& model, int block) {
  if (block < FirstTrainedBlock(model)) return 0;
  const BlockSpec& spec = model.blocks[block];
  return 2 * ForwardFlops(spec) - FrozenWeightFlops(spec);
}

}  // namespace thinwire
