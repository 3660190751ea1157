#include "config/yaml_message.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "config/suggestion.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Place in the document, for errors.
struct Place {
  std::string source;
  std::string path;  // "compression.activations"; empty at the root
  Origins* origins;  // may be null

  Place Below(const std::string& name) const {
    return {source, path.empty() ? name : absl::StrCat(path, ".", name), origins};
  }
  Place Element(size_t i) const { return {source, absl::StrCat(path, "[", i, "]"), origins}; }
  void Note(int line, bool is_section) const {
    if (origins != nullptr) origins->Add(path, YamlPlace(source, line), is_section);
  }
};

absl::Status Error(const Place& place, int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(YamlPlace(place.source, line), place.path,
                                                 place.path.empty() ? "" : ": ", what));
}

std::string Met(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "nothing";
    case YamlNode::Kind::kList:
      return node.items.empty() ? "an empty list" : "a list";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kScalar:
      break;
  }
  const std::string shown = node.text.size() > 60 ? node.text.substr(0, 60) + "..." : node.text;
  return node.quoted ? absl::StrCat("the text \"", shown, "\"") : shown;
}

absl::Status WrongType(const Place& place, const YamlNode& node, const std::string& wanted) {
  return Error(place, node.line, absl::StrCat("met ", Met(node), ", want ", wanted));
}

bool IsPlainScalar(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && !node.quoted;
}

absl::StatusOr<uint64_t> ToWhole(const Place& place, const YamlNode& node, uint64_t greatest) {
  uint64_t value = 0;
  const char* end = node.text.data() + node.text.size();
  const auto read = std::from_chars(node.text.data(), end, value);
  if (!IsPlainScalar(node) || read.ec != std::errc() || read.ptr != end || value > greatest) {
    return WrongType(place, node, absl::StrCat("a whole number from 0 to ", greatest));
  }
  return value;
}

// Reads a decimal number. Numbers too large for a double, or too small but not zero, are refused.
absl::StatusOr<double> ToDouble(const Place& place, const YamlNode& node) {
  double value = 0;
  const std::string mantissa = node.text.substr(0, node.text.find_first_of("eE"));
  const bool is_decimal = node.text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  const bool is_zero = mantissa.find_first_of("123456789") == std::string::npos;
  if (!IsPlainScalar(node) || !is_decimal || !absl::SimpleAtod(node.text, &value) ||
      !std::isfinite(value) || (value == 0 && !is_zero)) {
    return WrongType(place, node, "a number");
  }
  return value;
}

absl::StatusOr<bool> ToBool(const Place& place, const YamlNode& node) {
  if (IsPlainScalar(node)) {
    for (const char* word : {"true", "True", "TRUE"}) {
      if (node.text == word) return true;
    }
    for (const char* word : {"false", "False", "FALSE"}) {
      if (node.text == word) return false;
    }
  }
  return WrongType(place, node, "true or false");
}

absl::Status SetScalar(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                       Message* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32: {
      ASSIGN_OR_RETURN(const uint64_t value, ToWhole(place, node, UINT32_MAX));
      reflection->SetUInt32(message, field, static_cast<uint32_t>(value));
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      ASSIGN_OR_RETURN(const uint64_t value, ToWhole(place, node, UINT64_MAX));
      reflection->SetUInt64(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      ASSIGN_OR_RETURN(const double value, ToDouble(place, node));
      reflection->SetDouble(message, field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      ASSIGN_OR_RETURN(const bool value, ToBool(place, node));
      reflection->SetBool(message, field, value);
      return absl::OkStatus();
    }
    default:
      assert(field->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
      if (node.kind != YamlNode::Kind::kScalar) return WrongType(place, node, "text");
      reflection->SetString(message, field, node.text);
      return absl::OkStatus();
  }
}

// True for the list of an uncut model; other lists of names mean nothing when empty.
bool MayBeEmpty(const FieldDescriptor& field) {
  return field.full_name() == "thinwire.PipelineConfig.cuts";
}

absl::Status SetStrings(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                        Message* message) {
  const Reflection* reflection = message->GetReflection();
  reflection->ClearField(message, field);
  if (node.kind == YamlNode::Kind::kScalar) {
    reflection->AddString(message, field, node.text);
    return absl::OkStatus();
  }
  // No value means the empty list on a command line only: in a file all entries may be commented
  // out.
  const bool is_empty_override = node.kind == YamlNode::Kind::kNull && node.line == 0;
  const bool is_list = node.kind == YamlNode::Kind::kList || is_empty_override;
  const bool may_be_empty = MayBeEmpty(*field);
  if (!is_list || (node.items.empty() && !may_be_empty)) {
    return WrongType(place, node,
                     may_be_empty ? "a list of names, [] for none" : "a list of names");
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    if (item.kind != YamlNode::Kind::kScalar) return WrongType(place.Element(i), item, "a name");
    reflection->AddString(message, field, item.text);
  }
  if (node.items.empty()) reflection->AddString(message, field, kEmptyList);
  return absl::OkStatus();
}

absl::Status SetWholes(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                       Message* message) {
  const Reflection* reflection = message->GetReflection();
  reflection->ClearField(message, field);
  if (node.kind == YamlNode::Kind::kScalar) {
    ASSIGN_OR_RETURN(const uint64_t value, ToWhole(place, node, UINT64_MAX));
    reflection->AddUInt64(message, field, value);
    return absl::OkStatus();
  }
  if (node.kind != YamlNode::Kind::kList || node.items.empty()) {
    return WrongType(place, node, "a list of whole numbers");
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t value, ToWhole(place.Element(i), node.items[i], UINT64_MAX));
    reflection->AddUInt64(message, field, value);
  }
  return absl::OkStatus();
}

absl::Status MergeNode(const Place& place, const YamlNode& node, Message* message);

absl::Status SetMessages(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                         Message* message) {
  if (node.kind != YamlNode::Kind::kList) return WrongType(place, node, "a list");
  // Refuses an empty list in an override: it leaves no trace in the message, so it could not remove
  // the file's list. A list within a new element ("[0]") removes nothing.
  const bool is_override = node.line == 0;
  if (is_override && node.items.empty() && place.path.find('[') == std::string::npos) {
    return WrongType(place, node, "at least one element");
  }
  const Reflection* reflection = message->GetReflection();
  reflection->ClearField(message, field);
  if (place.origins != nullptr) place.origins->ForgetElements(place.path);
  for (size_t i = 0; i < node.items.size(); ++i) {
    place.Element(i).Note(node.items[i].line, /*is_section=*/false);
    RETURN_IF_ERROR(
        MergeNode(place.Element(i), node.items[i], reflection->AddMessage(message, field)));
  }
  return absl::OkStatus();
}

// Returns the value of a map's entry, which reflection shows in a list of pairs {key, value}.
Message* MutableEntry(const std::string& key, const FieldDescriptor* field, Message* message) {
  const Reflection* reflection = message->GetReflection();
  const FieldDescriptor* key_field = field->message_type()->map_key();
  for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
    Message* entry = reflection->MutableRepeatedMessage(message, field, i);
    if (entry->GetReflection()->GetString(*entry, key_field) == key) return entry;
  }
  Message* entry = reflection->AddMessage(message, field);
  entry->GetReflection()->SetString(entry, key_field, key);
  return entry;
}

// Returns the message of a map's entry whose fields are to be cleared; null if there is none or the
// entry holds no message. An entry that is the last step of the path is removed.
Message* EntryToClear(const std::string& key, bool is_last, const FieldDescriptor* field,
                      Message* message) {
  const Reflection* reflection = message->GetReflection();
  const FieldDescriptor* key_field = field->message_type()->map_key();
  const FieldDescriptor* value = field->message_type()->map_value();
  const int size = reflection->FieldSize(*message, field);
  for (int i = 0; i < size; ++i) {
    Message* entry = reflection->MutableRepeatedMessage(message, field, i);
    if (entry->GetReflection()->GetString(*entry, key_field) != key) continue;
    if (!is_last) {
      const bool has_fields = value->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      return has_fields ? entry->GetReflection()->MutableMessage(entry, value) : nullptr;
    }
    reflection->SwapElements(message, field, i, size - 1);
    reflection->RemoveLast(message, field);
    return nullptr;
  }
  return nullptr;
}

absl::Status MergeMap(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                      Message* message) {
  if (node.kind == YamlNode::Kind::kNull && node.line > 0) return absl::OkStatus();
  if (node.kind != YamlNode::Kind::kMap) return WrongType(place, node, "a map");
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const Place below = place.Below(node.keys[i]);
    Message* entry = MutableEntry(node.keys[i], field, message);
    const FieldDescriptor* value = field->message_type()->map_value();
    below.Note(node.key_lines[i], value->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE);
    if (value->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RETURN_IF_ERROR(
          MergeNode(below, node.items[i], entry->GetReflection()->MutableMessage(entry, value)));
    } else {
      RETURN_IF_ERROR(SetScalar(below, node.items[i], value, entry));
    }
  }
  return absl::OkStatus();
}

// True for messages with a short form: `feedback: ef` for `feedback: {kind: ef}`, or the value of
// an only field.
bool HasShorthand(const Descriptor& descriptor) {
  return descriptor.field(0)->name() == "kind" || descriptor.field_count() == 1;
}

absl::Status MergeField(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                        Message* message) {
  if (field->is_map()) return MergeMap(place, node, field, message);
  const bool holds_messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (field->is_repeated()) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      return SetWholes(place, node, field, message);
    }
    return holds_messages ? SetMessages(place, node, field, message)
                          : SetStrings(place, node, field, message);
  }
  if (!holds_messages) return SetScalar(place, node, field, message);
  Message* below = message->GetReflection()->MutableMessage(message, field);
  if (node.kind == YamlNode::Kind::kScalar && HasShorthand(*field->message_type())) {
    return SetScalar(place, node, field->message_type()->field(0), below);
  }
  return MergeNode(place, node, below);
}

std::vector<std::string> FieldNames(const Descriptor* descriptor) {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->field_count(); ++i) names.push_back(descriptor->field(i)->name());
  return names;
}

// Merges a node. An empty file or section (`compression:` with all lines commented out) is no
// error, but an override (line 0) must say something.
absl::Status MergeNode(const Place& place, const YamlNode& node, Message* message) {
  const bool is_in_file = node.line > 0 || place.path.empty();
  if (node.kind == YamlNode::Kind::kNull && is_in_file) return absl::OkStatus();
  const std::vector<std::string> names = FieldNames(message->GetDescriptor());
  if (node.kind != YamlNode::Kind::kMap) {
    return WrongType(place, node, absl::StrCat("a map of ", absl::StrJoin(names, ", ")));
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& key = node.keys[i];
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) {
      return Error(
          place.Below(key), node.key_lines[i],
          absl::StrCat("unknown field; did you mean ", Suggestion(*message->GetDescriptor(), key),
                       "? Fields here: ", absl::StrJoin(names, ", ")));
    }
    const bool is_section =
        field->is_map() ||
        (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE);
    place.Below(key).Note(node.key_lines[i], is_section);
    RETURN_IF_ERROR(MergeField(place.Below(key), node.items[i], field, message));
  }
  return absl::OkStatus();
}

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

// --- Writing.

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

// Writes a key and a message below it.
void WriteSection(const std::string& key, const Message& message, const std::string& indent,
                  std::string* out) {
  std::string below;
  WriteMessage(message, indent + "  ", &below);
  absl::StrAppend(out, indent, key, below.empty() ? ": {}\n" : ":\n", below);
}

void WriteMap(const Message& message, const FieldDescriptor* field, const std::string& indent,
              std::string* out) {
  const Reflection* reflection = message.GetReflection();
  const FieldDescriptor* value = field->message_type()->map_value();
  std::vector<std::pair<std::string, const Message*>> entries;
  for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
    const Message& entry = reflection->GetRepeatedMessage(message, field, i);
    entries.emplace_back(entry.GetReflection()->GetString(entry, field->message_type()->map_key()),
                         &entry);
  }
  std::sort(entries.begin(), entries.end());
  absl::StrAppend(out, indent, field->name(), ":\n");
  for (const auto& [key, entry] : entries) {
    if (value->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      WriteSection(YamlQuoted(key), entry->GetReflection()->GetMessage(*entry, value),
                   indent + "  ", out);
    } else {
      absl::StrAppend(out, indent, "  ", YamlQuoted(key), ": ", WrittenScalar(*entry, value), "\n");
    }
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
  const Reflection* reflection = message.GetReflection();
  const Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    const bool holds_messages = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated() ? reflection->FieldSize(message, field) == 0
                             : !reflection->HasField(message, field)) {
      continue;
    }
    if (field->is_map()) {
      WriteMap(message, field, indent, out);
    } else if (field->is_repeated()) {
      (holds_messages ? WriteMessages : WriteScalars)(message, field, indent, out);
    } else if (holds_messages) {
      WriteSection(field->name(), reflection->GetMessage(message, field), indent, out);
    } else {
      absl::StrAppend(out, indent, field->name(), ": ", WrittenScalar(message, field), "\n");
    }
  }
}

}  // namespace

absl::Status MergeYaml(const std::string& text, const std::string& source, Message* message,
                       Origins* origins) {
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, source));
  return MergeNode({source, "", origins}, root, message);
}

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
  for (size_t i = 0; i < steps.size() && message != nullptr; ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(steps[i]);
    if (field == nullptr) return;
    const bool is_key_next = field->is_map() && i + 1 < steps.size();
    if (i + 1 == steps.size()) {
      message->GetReflection()->ClearField(message, field);
    } else if (is_key_next) {
      ++i;
      message = EntryToClear(steps[i], /*is_last=*/i + 1 == steps.size(), field, message);
    } else if (field->is_repeated() || field->message_type() == nullptr ||
               !message->GetReflection()->HasField(*message, field)) {
      return;
    } else {
      message = message->GetReflection()->MutableMessage(message, field);
    }
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
  return MergeNode({source, "", origins}, node, message);
}

std::string WriteYaml(const Message& message) {
  std::string out;
  WriteMessage(message, "", &out);
  return out;
}

}  // namespace thinwire
