#include "models/lora.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<AdapterScaling> kScalingNames[] = {
    {AdapterScaling::kStandard, "standard"}, {AdapterScaling::kRankStabilized, "rank_stabilized"}};

// Returns "q_proj" for "model.layers.0.self_attn.q_proj".
std::string LastPart(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Returns the linear layer as files have it: itself, or its parts.
std::vector<FilePart> ModulesOf(const LayerSpec& layer) {
  if (!layer.parts.empty()) return layer.parts;
  return {{layer.name, layer.out_features}};
}

// Returns the number of a block, "7" of "layers.7"; -1 if it has none.
int64_t NumberOf(const BlockSpec& block) {
  int64_t number = -1;
  const size_t dot = block.name.rfind('.');
  if (dot == std::string::npos) return -1;
  return absl::SimpleAtoi(block.name.substr(dot + 1), &number) ? number : -1;
}

class Adapting {
 public:
  explicit Adapting(const LoraSpec& spec) : spec_(spec) {
    const double rank = static_cast<double>(spec.rank);
    const bool stabilizes = spec.scaling == AdapterScaling::kRankStabilized;
    scale_ = spec.alpha / (stabilizes ? std::sqrt(rank) : rank);
  }

  void Adapt(const BlockSpec& block, LayerSpec* layer) {
    layer->frozen = true;
    if (layer->kind != LayerKind::kLinear) return;
    int64_t first = 0;
    for (const FilePart& module : ModulesOf(*layer)) {
      const std::string name = LastPart(module.name);
      known_.insert(name);
      if (IsMeant(block, name)) {
        used_.insert(name);
        layer->adapters.push_back({module.name, {first, module.rows}});
      }
      first += module.rows;
    }
    if (layer->adapters.empty()) return;
    layer->adapter_rank = spec_.rank;
    layer->adapter_scale = scale_;
    layer->adapter_dropout = spec_.dropout;
  }

  absl::Status Check(const Model& model) const {
    for (const int64_t layer : spec_.layers) {
      const bool is_there =
          std::any_of(model.blocks.begin(), model.blocks.end(),
                      [layer](const BlockSpec& block) { return NumberOf(block) == layer; });
      if (!is_there) {
        return absl::InvalidArgumentError(
            absl::StrCat("layers: ", layer, ", which model ", model.name, " does not have"));
      }
    }
    for (const std::string& module : spec_.modules) {
      if (module == kAllLinear || used_.count(module) > 0) continue;
      return absl::InvalidArgumentError(absl::StrCat("modules: ", module, ", want one of ",
                                                     absl::StrJoin(known_, ", "),
                                                     ", the linear layers of model ", model.name));
    }
    return absl::OkStatus();
  }

 private:
  bool IsMeant(const BlockSpec& block, const std::string& module) const {
    const int64_t number = NumberOf(block);
    const bool is_of_layer = spec_.layers.empty()
                                 ? true
                                 : std::count(spec_.layers.begin(), spec_.layers.end(), number) > 0;
    const auto is_meant = [&module](const std::string& one) {
      return one == module || one == kAllLinear;
    };
    return is_of_layer && std::any_of(spec_.modules.begin(), spec_.modules.end(), is_meant);
  }

  const LoraSpec& spec_;
  double scale_ = 1;
  std::set<std::string> known_, used_;
};

// Refuses adapters of the ends, which are one weight in many models.
absl::Status CheckEnds(const Model& model, const LoraSpec& spec) {
  std::set<std::string> ends;
  for (const BlockSpec* block : {&model.blocks.front(), &model.blocks.back()}) {
    ForEachLayer(block->layers, [&](const LayerSpec& layer) {
      const bool is_end = layer.is_end || layer.kind == LayerKind::kEmbedding;
      if (is_end && !layer.name.empty()) ends.insert(LastPart(layer.name));
    });
  }
  for (const std::string& module : spec.modules) {
    if (ends.count(module) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("modules: ", module,
                     ", want linear layers between embedding and head: these two may be one "
                     "weight, and an adapter of one is lost or counted twice when it is merged"));
  }
  return absl::OkStatus();
}

}  // namespace

NameTable<AdapterScaling> TableOf(AdapterScaling) { return {"scaling", kScalingNames}; }

bool IsOfAdapter(const std::string& parameter) {
  return absl::EndsWith(parameter, ".lora_A.weight") || absl::EndsWith(parameter, ".lora_B.weight");
}

std::vector<std::string> UsualModules(const Model& model) {
  std::set<std::string> there;
  for (const BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      if (layer.kind != LayerKind::kLinear) return;
      for (const FilePart& module : ModulesOf(layer)) there.insert(LastPart(module.name));
    });
  }
  for (std::vector<std::string> usual :
       {std::vector<std::string>{"q_proj", "v_proj"}, {"c_attn"}, {"qkv_proj"}}) {
    const bool has_all = std::all_of(usual.begin(), usual.end(), [&](const std::string& module) {
      return there.count(module) > 0;
    });
    if (has_all) return usual;
  }
  return {};
}

absl::StatusOr<Model> WithAdapters(Model model, const LoraSpec& spec) {
  if (spec.rank < 1) {
    return absl::InvalidArgumentError(absl::StrCat("rank: ", spec.rank, ", want at least 1"));
  }
  RETURN_IF_ERROR(CheckEnds(model, spec));
  Adapting adapting(spec);
  for (BlockSpec& block : model.blocks) {
    const bool is_end = &block == &model.blocks.front() || &block == &model.blocks.back();
    ForEachLayer(block.layers, [&](LayerSpec& layer) {
      layer.frozen = true;
      if (!is_end) adapting.Adapt(block, &layer);
    });
  }
  RETURN_IF_ERROR(adapting.Check(model));
  if (TrainableParameters(model) > 0) return model;
  return absl::InvalidArgumentError(absl::StrCat(
      "modules: ", spec.modules.empty() ? "none" : absl::StrJoin(spec.modules, ", "),
      ", want a linear layer between embedding and head; model ", model.name, " has no such layer",
      spec.layers.empty() ? "" : absl::StrCat(" in layers ", absl::StrJoin(spec.layers, ", "))));
}

}  // namespace thinwire
