#include "config/checkpoint_window.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kWindowed[] = "sliding_attention", kFull[] = "full_attention";

// A window, and the layers that have it; no layers: all, if there is a window.
struct Windows {
  int64_t window = 0;
  std::vector<int64_t> layers;
};

// Returns the layers up to `count` for which `has` is true.
template <typename Has>
std::vector<int64_t> LayersWith(int64_t count, const Has& has) {
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < count; ++i) {
    if (has(i)) layers.push_back(i);
  }
  return layers;
}

// Returns whether the type says for each layer whether it has the window, and `use_sliding_window`
// whether any has.
bool HasWindowsByLayer(const Json& type) {
  return type == "qwen2" || type == "qwen3" || type == "smollm3";
}

// Returns the value of a key for a whole number.
absl::StatusOr<int64_t> Number(const Json& config, const char* key, int64_t absent) {
  const Json value = config.value(key, Json(absent));
  if (value.is_number_integer() && value.get<int64_t>() >= 0 &&
      value.get<int64_t>() <= std::numeric_limits<uint32_t>::max()) {
    return value.get<int64_t>();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key, " is ", value.dump(), ", want a whole number"));
}

// Returns the layers with the window. Without layer_types, Qwen's are those from max_window_layers
// on, SmolLM3's those without a rotary embedding.
absl::StatusOr<std::vector<int64_t>> WindowedLayers(const Json& type, const Json& config,
                                                    int64_t layers) {
  const Json types = config.value("layer_types", Json());
  if (types.is_array()) {
    for (const Json& of_layer : types) {
      if (of_layer == kWindowed || of_layer == kFull) continue;
      return absl::InvalidArgumentError(absl::StrCat("layer_types has ", of_layer.dump(), ", want ",
                                                     Json(kFull).dump(), " or ",
                                                     Json(kWindowed).dump()));
    }
    return LayersWith(std::min<int64_t>(layers, static_cast<int64_t>(types.size())),
                      [&](int64_t i) { return types[static_cast<size_t>(i)] == kWindowed; });
  }
  if (type == "smollm3") {
    ASSIGN_OR_RETURN(const int64_t every, Number(config, "no_rope_layer_interval", 4));
    return LayersWith(layers, [&](int64_t i) { return every > 0 && (i + 1) % every == 0; });
  }
  ASSIGN_OR_RETURN(const int64_t first, Number(config, "max_window_layers", 28));
  return LayersWith(layers, [&](int64_t i) { return i >= first; });
}

// Returns what the config.json says.
absl::StatusOr<Windows> WindowsOf(const Json& config, int64_t layers) {
  const Json type = config.value("model_type", Json());
  const bool by_layer = HasWindowsByLayer(type);
  if (!by_layer && type != "mistral" && type != "phi3") return Windows();
  const bool has_default = type != "phi3" && type != "smollm3";
  if (config.value("sliding_window", has_default ? Json(4096) : Json()).is_null()) return Windows();
  Windows windows;
  ASSIGN_OR_RETURN(windows.window, Number(config, "sliding_window", 4096));
  if (windows.window == 0 || !by_layer) return windows;
  if (config.value("use_sliding_window", Json(false)) != true) return Windows();
  ASSIGN_OR_RETURN(windows.layers, WindowedLayers(type, config, layers));
  if (windows.layers.empty()) return Windows();
  if (static_cast<int64_t>(windows.layers.size()) == layers) windows.layers.clear();
  return windows;
}

std::string TextOf(const Windows& windows) {
  if (windows.window == 0) return "no window";
  return absl::StrCat("a window of ", windows.window, " in ",
                      windows.layers.empty()
                          ? "all layers"
                          : absl::StrCat("layers [", absl::StrJoin(windows.layers, ", "), "]"));
}

}  // namespace

absl::Status FillWindow(const Json& config, ModelConfig* model) {
  if (model->has_window() || model->window_layers_size() > 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Windows windows, WindowsOf(config, model->layers()));
  if (windows.window == 0) return absl::OkStatus();
  model->set_window(static_cast<uint32_t>(windows.window));
  for (const int64_t layer : windows.layers) {
    model->add_window_layers(static_cast<uint64_t>(layer));
  }
  return absl::OkStatus();
}

absl::Status CheckWindow(const Json& config, const ModelOptions& options) {
  ASSIGN_OR_RETURN(const Windows theirs, WindowsOf(config, options.layers));
  Windows ours{options.window, options.window_layers};
  if (static_cast<int64_t>(ours.layers.size()) == options.layers) ours.layers.clear();
  if (ours.window == theirs.window && ours.layers == theirs.layers) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it has ", TextOf(theirs), ", but model has ", TextOf(ours)));
}

void AddWindowKeys(const ModelOptions& options, Json* config) {
  // Without the key some types have a window.
  (*config)["sliding_window"] = options.window > 0 ? Json(options.window) : Json();
  if (options.window == 0 || !HasWindowsByLayer(options.name)) return;
  const std::vector<int64_t>& with = options.window_layers;
  const auto has_window = [&](int64_t layer) {
    return with.empty() || std::find(with.begin(), with.end(), layer) != with.end();
  };
  (*config)["use_sliding_window"] = true;
  (*config)["max_window_layers"] = with.empty() ? 0 : with.front();
  Json types = Json::array();
  for (int64_t i = 0; i < options.layers; ++i) types.push_back(has_window(i) ? kWindowed : kFull);
  (*config)["layer_types"] = std::move(types);
}

}  // namespace thinwire
