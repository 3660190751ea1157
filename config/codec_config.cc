#include "config/codec_config.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/codecs/plugin.h"
#include "compress/feedback/spec.h"
#include "compress/spec_parameters.h"
#include "config/fields.h"
#include "config/yaml_message.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;

// Returns "group: 64".
std::string Written(const DirectionConfig& direction, const FieldDescriptor* field) {
  DirectionConfig alone = direction;
  for (const FieldDescriptor* other : SetFields(direction)) {
    if (other != field) alone.GetReflection()->ClearField(&alone, other);
  }
  return std::string(absl::StripSuffix(WriteYaml(alone), "\n"));
}

// Returns the entry's codec; an unknown value, which is refused where the codec is needed, counts
// as absent.
CodecSpec SpecOf(const DirectionConfig& direction) {
  CodecSpec spec;
  ReadCodec(direction, &spec).IgnoreError();
  return spec;
}

// Returns whether a field of NeedsOf matters.
bool HasSay(const std::map<std::string, const char*>& needs, const std::string& name) {
  const auto need = needs.find(name);
  return need != needs.end() && need->second == nullptr;
}

}  // namespace

absl::Status ReadCodec(const DirectionConfig& direction, CodecSpec* spec) {
  RETURN_IF_ERROR(FromName(direction.codec(), &spec->kind));
  absl::Status status;
  VisitParameters(*spec, [&](const char* name, auto& value, const auto& use) {
    value = use.fallback;
    if (name != std::string_view("plugin")) status.Update(ReadField(direction, name, &value));
  });
  return status;
}

std::map<std::string, const char*> NeedsOf(const DirectionConfig& direction) {
  std::map<std::string, const char*> needs;
  const CodecSpec spec = SpecOf(direction);
  if (direction.codec() != Name(spec.kind)) return needs;
  VisitAllParameters(
      spec, [&](const char* name, const auto&, const auto& use) { needs[name] = use.unmet; });
  // With zero: free any range is possible, so `zero` matters.
  if (HasSay(needs, "range") && direction.zero() != Name(Zero::kOnGrid)) needs["zero"] = nullptr;
  if (CodecRowOf(spec.kind).level != LevelField::kNone) {
    const auto ratio = needs.find("ratio");
    needs["level"] = ratio == needs.end() ? nullptr : ratio->second;
  }
  return needs;
}

absl::Status CheckNoSilentField(const std::string& path, const DirectionConfig& direction) {
  const auto needs = NeedsOf(direction);
  for (const FieldDescriptor* field : SetFields(direction)) {
    const auto need = needs.find(field->name());
    const bool is_parameter =
        field->message_type() == nullptr;  // CheckLevel knows what a level needs
    if (!is_parameter || need == needs.end() || need->second == nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".", Written(direction, field), ", want ", need->second, " with it"));
  }
  return absl::OkStatus();
}

void ForgetSilenced(const DirectionConfig& before, const DirectionConfig& next,
                    const DirectionConfig& after, DirectionConfig* entry) {
  const auto needs_before = NeedsOf(before), needs = NeedsOf(after);
  for (const auto& [name, need] : needs_before) {
    const bool is_silenced = need == nullptr && !HasSay(needs, name);
    if (!is_silenced || IsSet(next, name)) continue;
    entry->GetReflection()->ClearField(entry, FieldOf(*entry, name));
  }
}

void FillCodec(DirectionConfig* direction) {
  const CodecSpec spec = SpecOf(*direction);
  const std::map<std::string, const char*> needs = NeedsOf(*direction);
  VisitAllParameters(spec, [&](const char* name, const auto&, const auto& use) {
    if (IsFilledIn(use.presence) && HasSay(needs, name) && !IsSet(*direction, name)) {
      WriteField(name, use.fallback, direction);
    }
  });
  if (CodecRowOf(spec.kind).is_plugin && !direction->has_parameters()) {
    direction->set_parameters(kNoPluginParameters);
  }
}

void FillScopeOfTokens(DirectionConfig* direction) {
  if (direction->has_scope() || !HasSay(NeedsOf(*direction), "scope")) return;
  direction->set_scope(Name(DefaultScopeOfTokens(SpecOf(*direction))));
}

void FillRoundingOfGradients(DirectionConfig* gradients) {
  const std::string& feedback = gradients->feedback().kind();
  const bool comes_back = !feedback.empty() && feedback != Name(FeedbackKind::kNone);
  CodecSpec spec;
  FromName(gradients->codec(), &spec.kind).IgnoreError();
  const Rounding rounding = CodecRowOf(spec.kind).gradient_rounding;
  if (rounding == Rounding::kNearest || gradients->has_rounding() ||
      gradients->has_reconstruction() || comes_back) {
    return;
  }
  gradients->set_rounding(Name(rounding));
}

absl::StatusOr<DirectionConfig> ConfigOf(const CodecSpec& spec) {
  DirectionConfig config;
  config.set_codec(Name(spec.kind));
  if (CodecRowOf(spec.kind).is_plugin) {
    const Plugin* const plugin = FindPlugin(spec.plugin);
    if (plugin == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(spec.ToString(), ": was not loaded"));
    }
    config.set_plugin(plugin->path);
    config.set_parameters(plugin->parameters);
    return config;
  }
  VisitParameters(spec, [&](const char* name, const auto& value, const auto& use) {
    if (!IsRare(use.presence) || value != use.fallback) WriteField(name, value, &config);
  });
  return config;
}

}  // namespace thinwire
