#include "config/silent_fields.h"

#include <set>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "compress/spec_parameters.h"
#include "config/yaml_message.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using Names = std::set<std::string>;

// None of an entry whose codec is not known. An unknown choice counts as its default: whoever reads
// it refuses it.
Names ParametersWithSay(const DirectionConfig& direction) {
  const google::protobuf::Reflection* reflection = direction.GetReflection();
  Names names;
  CodecSpec spec;
  if (!FromName(direction.codec(), &spec.kind).ok()) return names;
  VisitParameters(spec, [&](const char* name, auto& value, bool) {
    names.insert(name);
    if constexpr (std::is_enum_v<std::decay_t<decltype(value)>>) {
      const FieldDescriptor* field = DirectionConfig::descriptor()->FindFieldByName(name);
      FromName(reflection->GetString(direction, field), &value).IgnoreError();
    }
  });
  // Any range goes with zero: free.
  if (names.count("range") > 0 && direction.zero() != "on_grid") names.insert("zero");
  if (names.count("ratio") > 0 || spec.kind == CodecKind::kUniform) names.insert("level");
  return names;
}

// What the parameter, which has no say in the entry, needs.
std::string NeedOf(const std::string& name, const DirectionConfig& direction) {
  static const auto* const of_values = new Names{"bits", "range", "rounding", "zero", "group"};
  const bool is_uniform = direction.codec() == "uniform";
  if (name == "rotation_block") return "rotation hadamard";
  if (name == "zero" && (is_uniform || direction.values() == "uniform")) return "range min_max";
  if (name == "group" && is_uniform) return "scope group";
  return of_values->count(name) > 0 ? "values uniform" : "indices own";
}

// What is set beside the codec's own parameters, or is one under another name there.
bool IsParameter(const std::string& name) {
  static const auto* const others = new Names{
      "codec", "feedback", "level", "plugin", "parameters", "on_nonfinite", "epilogue_only"};
  return others->count(name) == 0;
}

// "group: 64"
std::string Written(const DirectionConfig& direction, const FieldDescriptor* field) {
  DirectionConfig alone = direction;
  std::vector<const FieldDescriptor*> set;
  alone.GetReflection()->ListFields(direction, &set);
  for (const FieldDescriptor* other : set) {
    if (other != field) alone.GetReflection()->ClearField(&alone, other);
  }
  return std::string(absl::StripSuffix(WriteYaml(alone), "\n"));
}

}  // namespace

absl::Status CheckNoSilentField(const std::string& path, const DirectionConfig& direction) {
  const Names with_say = ParametersWithSay(direction);
  std::vector<const FieldDescriptor*> set;
  direction.GetReflection()->ListFields(direction, &set);
  for (const FieldDescriptor* field : set) {
    if (!IsParameter(field->name()) || with_say.count(field->name()) > 0) continue;
    const std::string need = NeedOf(field->name(), direction);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".", Written(direction, field), ", want ", need, " with it"));
  }
  return absl::OkStatus();
}

void ForgetSilenced(const DirectionConfig& before, const DirectionConfig& next,
                    const DirectionConfig& after, DirectionConfig* entry) {
  const google::protobuf::Reflection* reflection = entry->GetReflection();
  const Names still = ParametersWithSay(after);
  for (const std::string& name : ParametersWithSay(before)) {
    const FieldDescriptor* field = DirectionConfig::descriptor()->FindFieldByName(name);
    if (still.count(name) == 0 && !reflection->HasField(next, field)) {
      reflection->ClearField(entry, field);
    }
  }
}

}  // namespace thinwire
