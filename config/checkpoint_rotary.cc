#include "config/checkpoint_rotary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

// A key of a scaling in config.json and its field.
struct ScalingKey {
  const char* key;
  const char* field;
};
constexpr ScalingKey kScalingKeys[] = {{"factor", "factor"},
                                       {"low_freq_factor", "low"},
                                       {"high_freq_factor", "high"},
                                       {"original_max_position_embeddings", "original"}};

bool IsWholeNumber(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 1 &&
         value.get<int64_t>() <= std::numeric_limits<uint32_t>::max();
}

absl::Status Unwanted(const std::string& key, const Json& value, const std::string& want) {
  return absl::InvalidArgumentError(absl::StrCat(key, " is ", value.dump(), ", want ", want));
}

// Returns the scaling in that map; null if it scales nothing.
absl::StatusOr<Json> ScalingIn(const std::string& key, const Json& rope) {
  for (const auto& [name, value] : rope.items()) {
    if (value.is_object()) return Unwanted(key + "." + name, value, "the same for all layers");
  }
  const Json type = rope.value("rope_type", rope.value("type", Json("default")));
  if (type == "default") return Json();
  const bool is_llama3 = type == "llama3";
  if (!is_llama3 && type != "linear") {
    return Unwanted(key + ".rope_type", type, "default, linear or llama3");
  }
  Json scaling = {{"rope_type", type}};
  for (const ScalingKey& number : kScalingKeys) {
    const bool is_whole = number.field == std::string("original");
    const Json value = rope.value(number.key, Json());
    if (!(is_whole ? IsWholeNumber(value) : value.is_number())) {
      return Unwanted(absl::StrCat(key, ".", number.key), value,
                      is_whole ? "a whole number" : "a number");
    }
    scaling[number.key] = is_whole ? value : Json(value.get<double>());
    if (!is_llama3) break;  // linear has the factor only
  }
  return scaling;
}

// Takes what a map has for all layers. In transformers 5 it is `rope_parameters`, which has all
// about the rotary embedding. In version 4 it is `rope_scaling`, which is null if there is none.
absl::Status TakeRope(const char* key, Json* config) {
  const Json rope = config->value(key, Json());
  if (!rope.is_object()) return absl::OkStatus();
  ASSIGN_OR_RETURN((*config)["rope_scaling"], ScalingIn(key, rope));
  for (const char* own : {"rope_theta", "partial_rotary_factor"}) {
    if (rope.contains(own)) (*config)[own] = rope[own];
  }
  return absl::OkStatus();
}

// Finds n where every n-th layer, and no other, has no rotary embedding; 0 if all have it.
absl::Status TakeLayersWithRope(Json* config) {
  const Json layers = config->value("no_rope_layers", Json());
  if (!layers.is_array()) return absl::OkStatus();
  const auto first = std::find(layers.begin(), layers.end(), Json(0));
  const auto every = first == layers.end() ? 0 : first - layers.begin() + 1;
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool has_rope = every == 0 || (i + 1) % static_cast<size_t>(every) != 0;
    if (layers[i] != (has_rope ? 1 : 0)) {
      return Unwanted("no_rope_layers", layers, "1 for all layers, or 0 for every n-th");
    }
  }
  (*config)["no_rope_layer_interval"] = every;
  return absl::OkStatus();
}

}  // namespace

absl::Status UniteRotaryKeys(Json* config) {
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    RETURN_IF_ERROR(TakeRope(key, config));
  }
  return TakeLayersWithRope(config);
}

void FillScaling(const Json& scaling, ModelConfig* model) {
  if (!scaling.is_object()) return;
  RopeScalingConfig* const to = model->mutable_rope_scaling();
  to->set_type(scaling["rope_type"].get<std::string>());
  to->set_factor(scaling["factor"].get<double>());
  if (to->type() != Name(RopeScalingKind::kLlama3)) return;
  to->set_low(scaling["low_freq_factor"].get<double>());
  to->set_high(scaling["high_freq_factor"].get<double>());
  to->set_original(scaling["original_max_position_embeddings"].get<uint32_t>());
}

Json RopeScalingKey(const RopeScaling& scaling) {
  if (scaling.kind == RopeScalingKind::kNone) return nullptr;
  Json key = {{"rope_type", Name(scaling.kind)}};
  VisitParameters(scaling, [&](const char* field, const auto& value, Presence) {
    for (const ScalingKey& number : kScalingKeys) {
      if (number.field == std::string(field)) key[number.key] = value;
    }
  });
  return key;
}

void AddRotaryKeys(const ModelOptions& options, Json* config) {
  Json rope = RopeScalingKey(options.rope_scaling);
  if (rope.is_null()) rope = {{"rope_type", "default"}};
  rope["rope_theta"] = options.rope_theta;
  (*config)["rope_parameters"] = std::move(rope);
  if (!config->contains("no_rope_layer_interval")) return;
  Json layers = Json::array();
  for (int64_t i = 1; i <= options.layers; ++i) {
    layers.push_back(options.no_rope_every == 0 || i % options.no_rope_every != 0 ? 1 : 0);
  }
  (*config)["no_rope_layers"] = std::move(layers);
}

}  // namespace thinwire
