#include "config/adapter_config.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/stand_in.h"
#include "base/status.h"
#include "base/tensor_file.h"
#include "models/file_tensors.h"
#include "models/lora.h"
#include "nlohmann/json.hpp"

namespace thinwire {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kAllBlocks[] = "all";

// AdapterKeys of kinds of adapters that are not known here: absent, null, false or empty in others.
constexpr const char* kUnknownKinds[] = {"use_dora",
                                         "modules_to_save",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "target_parameters",
                                         "layer_replication",
                                         "trainable_token_indices",
                                         "lora_bias",
                                         "use_qalora",
                                         "use_bdlora",
                                         "alora_invocation_tokens",
                                         "arrow_config",
                                         "kasa_config",
                                         "velora_config",
                                         "monteclora_config"};

// Ways to start an adapter that leave the base's weights as they are.
constexpr const char* kKnownStarts[] = {"gaussian", "eva", "orthogonal"};

// Fields of `lora` as the files have them, and the blocks with adapters.
struct Adapter {
  LoraConfig lora;
  std::vector<std::string> blocks;
};

std::string PathIn(const LoraConfig& lora, const char* file) {
  return absl::StrCat(lora.init(), "/", file);
}

absl::Status BadAdapter(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("lora.init: ", path, ": ", what));
}

absl::Status BadAdapter(const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat("lora.init: ", status.message()));
}

// Reads the keys of an adapter_config.json.
class AdapterKeys {
 public:
  static absl::StatusOr<AdapterKeys> Read(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) return BadAdapter(text.status());
    Json config = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (config.is_object()) return AdapterKeys(path, std::move(config));
    const absl::Status stands_in = CheckNoStandIn(path, *text);
    return stands_in.ok() ? BadAdapter(path, "is no JSON map") : BadAdapter(stands_in);
  }

  Json At(const char* key, Json absent = Json()) const {
    return config_.value(key, std::move(absent));
  }

  absl::Status Wants(const char* key, const std::string& want) const {
    return BadAdapter(path_, absl::StrCat(key, " is ", At(key).dump(), ", want ", want));
  }

  absl::StatusOr<double> Number(const char* key, double absent) const {
    const Json value = At(key, absent);
    if (!value.is_number()) return Wants(key, "a number");
    return value.get<double>();
  }

  absl::StatusOr<uint32_t> Rank() const {
    const LoraSpec usual;
    const Json value = At("r", usual.rank);
    const bool is_rank = value.is_number_integer() && value.get<int64_t>() >= 1 &&
                         value.get<int64_t>() <= std::numeric_limits<uint32_t>::max();
    if (!is_rank) return Wants("r", "a whole number of at least 1");
    return value.get<uint32_t>();
  }

  absl::StatusOr<AdapterScaling> Scaling() const {
    const Json value = At("use_rslora", false);
    if (!value.is_boolean()) return Wants("use_rslora", "true or false");
    return value.get<bool>() ? AdapterScaling::kRankStabilized : AdapterScaling::kStandard;
  }

  // Returns the numbers of blocks that the key names; empty: all.
  absl::StatusOr<std::vector<int64_t>> Layers() const {
    const char* const key = "layers_to_transform";
    Json value = At(key);
    if (value.is_null()) return std::vector<int64_t>();
    if (!value.is_array()) value = Json::array({value});
    std::set<int64_t> layers;
    for (const Json& layer : value) {
      if (!layer.is_number_unsigned()) return Wants(key, "numbers of blocks, from 0");
      layers.insert(layer.get<int64_t>());
    }
    return std::vector<int64_t>(layers.begin(), layers.end());
  }

  absl::Status CheckKind(const std::string& model) const {
    if (At("peft_type") != "LORA") return Wants("peft_type", "\"LORA\"");
    for (const char* const key : kUnknownKinds) {
      const Json value = At(key);
      const bool is_absent = value.is_null() || value == false || value.empty();
      if (!is_absent) return Wants(key, "none: adapters here are plain LoRA, of one rank");
    }
    if (At("bias", "none") != "none") return Wants("bias", "\"none\": biases are the base's");
    const Json start = At("init_lora_weights", true);
    const bool keeps_base =
        !start.is_string() ||
        absl::c_any_of(kKnownStarts, [&](const char* one) { return start == one; });
    if (!keeps_base) {
      return Wants("init_lora_weights",
                   absl::StrCat("true, false, ", absl::StrJoin(kKnownStarts, ", "),
                                ": others change the weights of the base"));
    }
    const bool is_gpt2 = model.rfind("gpt2", 0) == 0;
    if (At("fan_in_fan_out", false) != true || is_gpt2) return absl::OkStatus();
    return Wants("fan_in_fan_out",
                 absl::StrCat("false with model ", model, ": only GPT-2's weights are transposed"));
  }

 private:
  AdapterKeys(const std::string& path, Json config) : path_(path), config_(std::move(config)) {}

  std::string path_;
  Json config_;
};

// Returns the layer that a tensor's adapter stands beside, "model.layers.0.self_attn.q_proj"; empty
// if it is of none.
std::string LayerOf(absl::string_view tensor) {
  if (!absl::ConsumePrefix(&tensor, kAdapterPrefix)) return "";
  for (const char* const suffix : {".lora_A.weight", ".lora_embedding_A"}) {
    if (absl::ConsumeSuffix(&tensor, suffix)) return std::string(tensor);
  }
  return "";
}

// Returns the number in a layer's name, -1 if there is none.
int64_t BlockOf(const std::vector<std::string>& parts) {
  int64_t block = -1;
  for (const std::string& part : parts) {
    if (absl::SimpleAtoi(part, &block) && block >= 0) return block;
  }
  return -1;
}

// Adds the modules and blocks with adapters. The keys may have a pattern for the former.
absl::Status AddLayers(const std::string& path, Adapter* adapter) {
  const absl::StatusOr<OpenTensorFile> file = OpenTensorFile::Open(path);
  if (!file.ok()) return BadAdapter(file.status());
  std::set<std::string> modules;
  std::set<int64_t> blocks;
  for (const TensorPlace& tensor : file->header().tensors) {
    const std::string layer = LayerOf(tensor.name);
    if (layer.empty()) continue;
    const std::vector<std::string> parts = absl::StrSplit(layer, '.');
    modules.insert(parts.back());
    blocks.insert(BlockOf(parts));
  }
  if (modules.empty()) {
    return BadAdapter(path, absl::StrCat("has no tensor ", kAdapterPrefix, "LAYER.lora_A.weight"));
  }
  for (const std::string& module : modules) adapter->lora.add_modules(module);
  for (const int64_t block : blocks) {
    if (block >= 0) adapter->blocks.push_back(absl::StrCat(block));
  }
  return absl::OkStatus();
}

// Returns whether these are all blocks up to the last one.
bool AreFirst(const std::vector<std::string>& blocks) {
  return !blocks.empty() && blocks.back() == absl::StrCat(blocks.size() - 1);
}

absl::StatusOr<Adapter> ReadAdapter(const Experiment& experiment) {
  const LoraConfig& given = experiment.lora();
  const LoraSpec usual;
  ASSIGN_OR_RETURN(const AdapterKeys keys, AdapterKeys::Read(PathIn(given, kAdapterConfigFile)));
  RETURN_IF_ERROR(keys.CheckKind(experiment.model().name()));
  Adapter adapter;
  ASSIGN_OR_RETURN(const uint32_t rank, keys.Rank());
  ASSIGN_OR_RETURN(const double alpha, keys.Number("lora_alpha", usual.alpha));
  ASSIGN_OR_RETURN(const double dropout, keys.Number("lora_dropout", usual.dropout));
  ASSIGN_OR_RETURN(const AdapterScaling scaling, keys.Scaling());
  ASSIGN_OR_RETURN(const std::vector<int64_t> layers, keys.Layers());
  adapter.lora.set_rank(rank);
  adapter.lora.set_alpha(alpha);
  adapter.lora.set_dropout(dropout);
  adapter.lora.set_scaling(Name(scaling));
  RETURN_IF_ERROR(AddLayers(PathIn(given, kAdapterFile), &adapter));
  for (const int64_t layer : layers) adapter.lora.add_layers(absl::StrCat(layer));
  if (!layers.empty()) return adapter;
  if (AreFirst(adapter.blocks)) {
    adapter.lora.add_layers(kAllBlocks);
  } else {
    for (const std::string& block : adapter.blocks) adapter.lora.add_layers(block);
  }
  return adapter;
}

// Returns the refusal of a field that says something else than the file.
absl::Status Differs(const char* field, const std::string& given, const std::string& path,
                     const std::string& says) {
  return absl::InvalidArgumentError(
      absl::StrCat("lora.", field, ": ", given, ", but lora.init: ", path, " has ", says));
}

template <typename List>
std::string Listed(const List& list) {
  return absl::StrCat("[", absl::StrJoin(list, ", "), "]");
}

template <typename List, typename Other>
bool HaveTheSame(const List& a, const Other& b) {
  return std::set<std::string>(a.begin(), a.end()) == std::set<std::string>(b.begin(), b.end());
}

// Refuses a given number or name that is another in the file.
absl::Status CheckScale(const LoraConfig& given, const LoraConfig& adapter) {
  const std::string path = PathIn(given, kAdapterConfigFile);
  if (given.has_rank() && given.rank() != adapter.rank()) {
    return Differs("rank", absl::StrCat(given.rank()), path, absl::StrCat("r ", adapter.rank()));
  }
  if (given.has_alpha() && given.alpha() != adapter.alpha()) {
    return Differs("alpha", absl::StrCat(given.alpha()), path,
                   absl::StrCat("lora_alpha ", adapter.alpha()));
  }
  if (given.has_dropout() && given.dropout() != adapter.dropout()) {
    return Differs("dropout", absl::StrCat(given.dropout()), path,
                   absl::StrCat("lora_dropout ", adapter.dropout()));
  }
  if (given.has_scaling() && given.scaling() != adapter.scaling()) {
    const bool stabilizes = adapter.scaling() == Name(AdapterScaling::kRankStabilized);
    return Differs("scaling", given.scaling(), path,
                   absl::StrCat("use_rslora ", stabilizes ? "true" : "false"));
  }
  return absl::OkStatus();
}

// Refuses given modules or layers that are others in the file. What `linear` stands for, its
// tensors tell.
absl::Status CheckSameLayers(const LoraConfig& given, const Adapter& adapter) {
  const auto& modules = given.modules();
  const bool names_modules = !modules.empty() && !absl::c_linear_search(modules, kAllLinear);
  if (names_modules && !HaveTheSame(modules, adapter.lora.modules())) {
    return Differs("modules", Listed(modules), PathIn(given, kAdapterFile),
                   absl::StrCat("adapters of ", Listed(adapter.lora.modules())));
  }
  const auto& layers = given.layers();
  const bool differ = !layers.empty() && !HaveTheSame(layers, adapter.lora.layers()) &&
                      !HaveTheSame(layers, adapter.blocks);
  if (!differ) return absl::OkStatus();
  return Differs("layers", Listed(layers), PathIn(given, kAdapterFile),
                 absl::StrCat("adapters in blocks ", Listed(adapter.blocks)));
}

// Returns whether a name, of the hub or a path, is that of the model in a folder. A model of the
// hub may have been copied to a folder of its own name.
bool IsNameOf(const std::string& name, const std::string& folder) {
  std::error_code ignored;  // what is not there is not the same
  if (fs::equivalent(name, folder, ignored)) return true;
  const std::string id = HubIdOr(folder);
  if (IsHubId(id)) return absl::StrCat("hf:", name) == id.substr(0, id.find('@'));
  const fs::path path(name);
  return path.is_relative() && path.filename() == fs::path(folder).lexically_normal().filename();
}

}  // namespace

absl::Status FillFromAdapter(Experiment* experiment) {
  if (!experiment->lora().has_init()) return absl::OkStatus();
  LoraConfig* const lora = experiment->mutable_lora();
  if (!experiment->has_init()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lora.init: ", lora->init(), ", want init with it, the model that the adapter is of"));
  }
  ASSIGN_OR_RETURN(Adapter adapter, ReadAdapter(*experiment));
  RETURN_IF_ERROR(CheckScale(*lora, adapter.lora));
  RETURN_IF_ERROR(CheckSameLayers(*lora, adapter));
  if (!lora->modules().empty()) adapter.lora.clear_modules();  // merging would join the lists
  if (!lora->layers().empty()) adapter.lora.clear_layers();
  lora->MergeFrom(adapter.lora);
  return absl::OkStatus();
}

absl::StatusOr<std::string> OtherBaseOfAdapter(const Experiment& experiment) {
  const LoraConfig& lora = experiment.lora();
  if (!lora.has_init()) return std::string();
  ASSIGN_OR_RETURN(const AdapterKeys keys, AdapterKeys::Read(PathIn(lora, kAdapterConfigFile)));
  const Json base = keys.At("base_model_name_or_path", "");
  const bool is_named = base.is_string() && !base.get<std::string>().empty();
  if (!is_named || IsNameOf(base.get<std::string>(), experiment.init())) return std::string();
  return absl::StrCat("lora.init: ", lora.init(), " is an adapter of ", base.get<std::string>(),
                      ", and init is ", experiment.init(),
                      ": over another model than its own it means nothing");
}

}  // namespace thinwire
