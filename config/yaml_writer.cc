#include <charconv>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/fields.h"
#include "config/yaml_message.h"
#include "config/yaml_tree.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Returns the shortest digits that read back to the same double, with a point before any exponent,
// which YAML 1.1 readers need.
std::string Digits(double value) {
  char buffer[32];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos) {
    text.insert(exponent, ".0");
  }
  return text;
}

std::string WrittenScalar(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return absl::StrCat(reflection->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Digits(reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->GetBool(message, field) ? "true" : "false";
    default:
      return YamlQuoted(reflection->GetString(message, field));
  }
}

void WriteMessage(const Message& message, const std::string& indent, std::string* out);

// Writes a field that is neither a list nor a map, as the value of `key`.
void WriteOne(const std::string& key, const Message& message, const FieldDescriptor* field,
              const std::string& indent, std::string* out) {
  if (field->message_type() == nullptr) {
    absl::StrAppend(out, indent, key, ": ", WrittenScalar(message, field), "\n");
    return;
  }
  std::string below;
  WriteMessage(message.GetReflection()->GetMessage(message, field), indent + "  ", &below);
  absl::StrAppend(out, indent, key, below.empty() ? ": {}\n" : ":\n", below);
}

void WriteMap(const Message& message, const FieldDescriptor* field, const std::string& indent,
              std::string* out) {
  absl::StrAppend(out, indent, field->name(), ":\n");
  for (const auto& [key, entry] : EntriesOf(message, field)) {
    WriteOne(YamlQuoted(key), *entry, field->message_type()->map_value(), indent + "  ", out);
  }
}

void WriteMessages(const Message& message, const FieldDescriptor* field, const std::string& indent,
                   std::string* out) {
  const Reflection* reflection = message.GetReflection();
  absl::StrAppend(out, indent, field->name(), ":\n");
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    std::string below;
    WriteMessage(reflection->GetRepeatedMessage(message, field, i), indent + "    ", &below);
    if (below.empty()) {
      absl::StrAppend(out, indent, "  - {}\n");
    } else {
      below[indent.size() + 2] = '-';  // the element's first field carries the dash
      absl::StrAppend(out, below);
    }
  }
}

void WriteScalars(const Message& message, const FieldDescriptor* field, const std::string& indent,
                  std::string* out) {
  const Reflection* reflection = message.GetReflection();
  std::vector<std::string> items;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    items.push_back(field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64
                        ? absl::StrCat(reflection->GetRepeatedUInt64(message, field, i))
                        : YamlQuoted(reflection->GetRepeatedString(message, field, i)));
  }
  absl::StrAppend(out, indent, field->name(), ": [", absl::StrJoin(items, ", "), "]\n");
}

void WriteMessage(const Message& message, const std::string& indent, std::string* out) {
  for (const FieldDescriptor* field : SetFields(message)) {
    if (field->is_map()) {
      WriteMap(message, field, indent, out);
    } else if (field->is_repeated()) {
      (field->message_type() ? WriteMessages : WriteScalars)(message, field, indent, out);
    } else {
      WriteOne(field->name(), message, field, indent, out);
    }
  }
}

}  // namespace

std::string WriteYaml(const Message& message) {
  std::string out;
  WriteMessage(message, "", &out);
  return out;
}

}  // namespace thinwire
