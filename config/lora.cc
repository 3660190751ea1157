#include "models/lora.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/enum_names.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/sections.h"
#include "config/specs.h"

namespace thinwire {
namespace {

constexpr char kAll[] = "all";
constexpr uint32_t kMostRank = 1 << 16;

absl::Status FillModules(const Experiment& experiment, LoraConfig* lora) {
  if (!lora->modules().empty()) return absl::OkStatus();
  Experiment plain = experiment;
  plain.clear_lora();
  plain.clear_base();
  ASSIGN_OR_RETURN(const Model model, ModelFrom(plain));
  for (const std::string& module : UsualModules(model)) lora->add_modules(module);
  if (!lora->modules().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("lora.modules: is required with model ",
                                                 experiment.model().name(), ", or ", kAllLinear));
}

absl::Status CheckAlone(const Experiment& experiment) {
  if (!experiment.freeze().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("freeze: ", experiment.freeze(0),
                     ", want none with lora, which trains adapters and nothing else"));
  }
  if (experiment.tensor().parts() <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("tensor.parts: ", experiment.tensor().parts(), ", want 1 with lora"));
}

}  // namespace

absl::StatusOr<LoraSpec> LoraFrom(const LoraConfig& config) {
  LoraSpec spec;
  if (config.has_rank()) spec.rank = config.rank();
  if (config.has_alpha()) spec.alpha = config.alpha();
  spec.dropout = config.dropout();
  spec.modules = {config.modules().begin(), config.modules().end()};
  if (config.has_scaling()) {
    RETURN_IF_ERROR(Annotated(FromName(config.scaling(), &spec.scaling), "lora.scaling"));
  }
  if (config.layers_size() == 1 && config.layers(0) == kAll) return spec;
  for (const std::string& layer : config.layers()) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(layer, &number) || number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("lora.layers: ", layer, ", want all or numbers of blocks, from 0"));
    }
    spec.layers.push_back(number);
  }
  return spec;
}

absl::Status ResolveLora(Experiment* experiment) {
  RETURN_IF_ERROR(CheckAlone(*experiment));
  LoraConfig* const lora = experiment->mutable_lora();
  const LoraSpec usual;
  if (!lora->has_rank()) lora->set_rank(static_cast<uint32_t>(usual.rank));
  if (!lora->has_alpha()) lora->set_alpha(usual.alpha);
  if (!lora->has_dropout()) lora->set_dropout(usual.dropout);
  if (!lora->has_scaling()) lora->set_scaling(Name(usual.scaling));
  if (lora->layers().empty()) lora->add_layers(kAll);
  RETURN_IF_ERROR(FillModules(*experiment, lora));
  RETURN_IF_ERROR(CheckValue(lora->rank() >= 1 && lora->rank() <= kMostRank, "lora.rank",
                             lora->rank(), absl::StrCat("1 to ", kMostRank)));
  RETURN_IF_ERROR(CheckValue(lora->alpha() > 0 && std::isfinite(lora->alpha()), "lora.alpha",
                             lora->alpha(), "a finite number above 0"));
  RETURN_IF_ERROR(CheckValue(lora->dropout() >= 0 && lora->dropout() < 1, "lora.dropout",
                             lora->dropout(), "at least 0 and less than 1"));
  return ModelFrom(*experiment).status();
}

}  // namespace thinwire
