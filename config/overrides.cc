#include "config/overrides.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "config/fields.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Returns the steps of a path. A map's key ends where a field of the map's values follows, as keys
// may contain dots.
std::vector<std::string> PathSteps(const std::string& path, const Descriptor* descriptor) {
  const std::vector<std::string> parts = absl::StrSplit(path, '.');
  std::vector<std::string> steps;
  for (size_t i = 0; i < parts.size(); ++i) {
    steps.push_back(parts[i]);
    const FieldDescriptor* field = descriptor ? descriptor->FindFieldByName(parts[i]) : nullptr;
    descriptor = field != nullptr ? field->message_type() : nullptr;
    if (field == nullptr || !field->is_map() || i + 1 == parts.size()) continue;
    descriptor = descriptor->map_value()->message_type();
    std::string key = parts[++i];
    while (i + 1 < parts.size() &&
           (descriptor == nullptr || descriptor->FindFieldByName(parts[i + 1]) == nullptr)) {
      absl::StrAppend(&key, ".", parts[++i]);
    }
    steps.push_back(key);
  }
  return steps;
}

// Sets all lines to 0, as a command line has none.
void ForgetLines(YamlNode* node) {
  node->line = 0;
  std::fill(node->key_lines.begin(), node->key_lines.end(), 0);
  for (YamlNode& item : node->items) ForgetLines(&item);
}

}  // namespace

std::string ClearedBy(const std::string& assignment, const Message& message) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) return "";
  const absl::StatusOr<YamlNode> value = ParseYaml(assignment.substr(equals + 1), "");
  if (!value.ok() || value->kind != YamlNode::Kind::kNull) return "";
  const std::string path = assignment.substr(0, equals);
  const FieldDescriptor* field = nullptr;
  const Descriptor* descriptor = message.GetDescriptor();
  for (const std::string& step : PathSteps(path, descriptor)) {
    const bool is_key = field != nullptr && field->is_map();
    field = descriptor == nullptr ? nullptr : descriptor->FindFieldByName(is_key ? "value" : step);
    if (field == nullptr) return "";
    descriptor = field->message_type();
  }
  return field->is_repeated() || descriptor != nullptr ? "" : path;
}

void ClearField(const std::string& path, Message* message) {
  const std::vector<std::string> steps = PathSteps(path, message->GetDescriptor());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Reflection* reflection = message->GetReflection();
    const FieldDescriptor* field = FieldOf(*message, steps[i]);
    if (field == nullptr || !IsSet(*message, field)) return;
    if (i + 1 == steps.size()) {
      reflection->ClearField(message, field);
      return;
    }
    if (field->is_map()) {
      const int entry = IndexOfEntry(*message, field, steps[++i]);
      if (entry < 0) return;
      if (i + 1 == steps.size()) {
        reflection->SwapElements(message, field, entry, reflection->FieldSize(*message, field) - 1);
        reflection->RemoveLast(message, field);
        return;
      }
      message = reflection->MutableRepeatedMessage(message, field, entry);
      field = field->message_type()->map_value();
    }
    if (field->is_repeated() || field->message_type() == nullptr) return;
    message = message->GetReflection()->MutableMessage(message, field);
  }
}

absl::Status Override(const std::string& assignment, Message* message, Origins* origins) {
  const std::string source = absl::StrCat("--set ", assignment);
  if (const std::string cleared = ClearedBy(assignment, *message); !cleared.empty()) {
    ClearField(cleared, message);
    return absl::OkStatus();
  }
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(absl::StrCat(source, ": want path.to.field=value"));
  }
  ASSIGN_OR_RETURN(YamlNode node, ParseYaml(assignment.substr(equals + 1), source));
  std::vector<std::string> steps =
      PathSteps(assignment.substr(0, equals), message->GetDescriptor());
  ForgetLines(&node);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    YamlNode above;
    above.kind = YamlNode::Kind::kMap;
    above.keys.push_back(*step);
    above.key_lines.push_back(0);
    above.items.push_back(std::move(node));
    node = std::move(above);
  }
  return MergeTree(node, source, message, origins);
}

}  // namespace thinwire
