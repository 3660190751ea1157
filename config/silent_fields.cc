#include "config/silent_fields.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "config/codec_config.h"
#include "config/yaml_message.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;

// Returns "group: 64".
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
  const auto needs = NeedsOf(direction);
  std::vector<const FieldDescriptor*> set;
  direction.GetReflection()->ListFields(direction, &set);
  for (const FieldDescriptor* field : set) {
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
  const google::protobuf::Reflection* reflection = entry->GetReflection();
  const auto needs = NeedsOf(after);
  for (const auto& [name, need_before] : NeedsOf(before)) {
    const auto need = needs.find(name);
    const bool is_silenced =
        need_before == nullptr && (need == needs.end() || need->second != nullptr);
    const FieldDescriptor* field = DirectionConfig::descriptor()->FindFieldByName(name);
    if (is_silenced && !reflection->HasField(next, field)) reflection->ClearField(entry, field);
  }
}

}  // namespace thinwire
