#include "coordinator/run/adapter_files.h"

#include <list>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/model_folder.h"
#include "base/path.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "config/adapter_config.h"
#include "config/specs.h"
#include "coordinator/files/folders.h"
#include "models/file_tensors.h"
#include "models/lora.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;

// Returns the modules as peft finds them, by the end of a layer's name.
std::set<std::string> TargetModules(const Model& model) {
  std::set<std::string> modules;
  for (const BlockSpec& block : model.blocks) {
    ForEachLayer(block.layers, [&](const LayerSpec& layer) {
      for (const AdapterSpec& adapter : layer.adapters) {
        modules.insert(adapter.name.substr(adapter.name.rfind('.') + 1));
      }
    });
  }
  return modules;
}

// Adds how others find the base: by its name and commit in the hub, or by its folder.
void AddBase(const std::string& init, nlohmann::ordered_json* config) {
  const std::string id = HubIdOr(init);
  const bool is_hub = IsHubId(id);
  const size_t at = id.find('@'), scheme = id.find(':');
  (*config)["base_model_name_or_path"] = is_hub ? id.substr(scheme + 1, at - scheme - 1) : id;
  if (is_hub && at != std::string::npos) (*config)["revision"] = id.substr(at + 1);
}

}  // namespace

absl::StatusOr<std::string> AdapterConfig(const Experiment& experiment) {
  ASSIGN_OR_RETURN(const Model model, ModelFrom(experiment));
  ASSIGN_OR_RETURN(const LoraSpec spec, LoraFrom(experiment.lora()));
  const LoraConfig& lora = experiment.lora();
  nlohmann::ordered_json config = {
      {"peft_type", "LORA"},
      {"task_type", nullptr},
      {"base_model_name_or_path", nullptr},
      {"r", lora.rank()},
      {"lora_alpha", lora.alpha()},
      {"lora_dropout", lora.dropout()},
      {"bias", "none"},
      {"fan_in_fan_out", experiment.model().name().rfind("gpt2", 0) == 0},
      {"use_rslora", lora.scaling() == Name(AdapterScaling::kRankStabilized)},
      {"init_lora_weights", true},
      {"inference_mode", true}};
  if (experiment.has_init()) AddBase(experiment.init(), &config);
  if (IsCausalLanguage(model)) config["task_type"] = "CAUSAL_LM";
  config["target_modules"] = TargetModules(model);
  config["layers_to_transform"] = nullptr;
  if (!spec.layers.empty()) config["layers_to_transform"] = spec.layers;
  return config.dump(2) + "\n";
}

absl::Status SaveAdapter(const Experiment& experiment, const std::string& model_dir,
                         const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string config, AdapterConfig(experiment));
  ASSIGN_OR_RETURN(const ModelFolder model, ModelFolder::Open(model_dir));
  Safetensors adapter;
  std::list<std::string> values;  // which the tensors point into
  for (const auto& [name, entry] : model.tensors()) {
    if (!IsOfAdapter(name)) continue;
    std::string& bytes = values.emplace_back();
    RETURN_IF_ERROR(model.Read(entry, kPieceBytes, [&bytes](std::string_view piece) {
      bytes += piece;
      return absl::OkStatus();
    }));
    adapter.tensors.push_back({kAdapterPrefix + name, entry.place.dtype, entry.place.shape, bytes});
  }
  return WriteFolder(dir, [&](const std::string& path) -> absl::Status {
    RETURN_IF_ERROR(WriteTensorFile(absl::StrCat(path, "/", kAdapterFile), adapter));
    return ReplaceFile(absl::StrCat(path, "/", kAdapterConfigFile), config);
  });
}

}  // namespace thinwire
