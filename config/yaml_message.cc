#include "config/yaml_message.h"

#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "config/fields.h"
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

absl::Status MergeNode(const Place& place, const YamlNode& node, Message* message);

absl::Status AddElement(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                        Message* message) {
  const Reflection* reflection = message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      place.Note(node.line, /*is_section=*/false);
      return MergeNode(place, node, reflection->AddMessage(message, field));
    case FieldDescriptor::CPPTYPE_UINT64: {
      ASSIGN_OR_RETURN(const uint64_t value, ToWhole(place, node, UINT64_MAX));
      reflection->AddUInt64(message, field, value);
      return absl::OkStatus();
    }
    default:
      assert(field->cpp_type() == FieldDescriptor::CPPTYPE_STRING);
      if (node.kind != YamlNode::Kind::kScalar) return WrongType(place, node, "a name");
      reflection->AddString(message, field, node.text);
      return absl::OkStatus();
  }
}

// Returns whether a list may have these elements. No value means the empty list on a command line
// only: in a file all entries may be commented out. An override may not empty a list of messages:
// that leaves no trace in the message, so it could not remove the file's list. A list within a new
// element ("[0]") removes nothing.
bool IsList(const Place& place, const YamlNode& node, const FieldDescriptor& field) {
  const bool is_override = node.line == 0;
  if (node.kind == YamlNode::Kind::kNull) return is_override && MayBeEmpty(field);
  if (node.kind != YamlNode::Kind::kList) return false;
  const bool is_whole = !is_override || place.path.find('[') != std::string::npos;
  return !node.items.empty() || MayBeEmpty(field) || (field.message_type() != nullptr && is_whole);
}

std::string WantedList(const YamlNode& node, const FieldDescriptor& field) {
  if (field.message_type() != nullptr) {
    return node.kind == YamlNode::Kind::kList ? "at least one element" : "a list";
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) return "a list of whole numbers";
  return MayBeEmpty(field) ? "a list of names, [] for none" : "a list of names";
}

absl::Status SetList(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                     Message* message) {
  message->GetReflection()->ClearField(message, field);
  if (node.kind == YamlNode::Kind::kScalar && field->message_type() == nullptr) {
    return AddElement(place, node, field, message);
  }
  if (!IsList(place, node, *field)) return WrongType(place, node, WantedList(node, *field));
  if (place.origins != nullptr) place.origins->ForgetElements(place.path);
  for (size_t i = 0; i < node.items.size(); ++i) {
    RETURN_IF_ERROR(AddElement(place.Element(i), node.items[i], field, message));
  }
  if (MayBeEmpty(*field) && node.items.empty()) {
    message->GetReflection()->AddString(message, field, kEmptyList);
  }
  return absl::OkStatus();
}

// True for messages with a short form: `feedback: ef` for `feedback: {kind: ef}`, or the value of
// an only field.
bool HasShorthand(const Descriptor& descriptor) {
  return descriptor.field(0)->name() == "kind" || descriptor.field_count() == 1;
}

constexpr char kAutoEntry[] = "auto";

absl::Status MergeMap(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                      Message* message);

// True for the map whose entries `auto` chooses: it stands for an entry of that name.
bool MayBeAuto(const FieldDescriptor& field) {
  return field.full_name() == "thinwire.ReplicasConfig.stages";
}

// True for text in place of the codec of what is kept: where it waits. `stash: disk` is short for
// `swap: disk`.
bool NamesAPlace(const FieldDescriptor& field, const YamlNode& node) {
  return field.full_name() == "thinwire.PipelineConfig.stash" && IsPlainScalar(node);
}

// Merges the value of the key on line `key_line`.
absl::Status MergeField(const Place& place, int key_line, const YamlNode& node,
                        const FieldDescriptor* field, Message* message) {
  const bool is_list = field->is_repeated() && !field->is_map();
  place.Note(key_line, /*is_section=*/field->message_type() != nullptr && !is_list);
  if (field->is_map()) return MergeMap(place, node, field, message);
  if (is_list) return SetList(place, node, field, message);
  if (field->message_type() == nullptr) return SetScalar(place, node, field, message);
  if (NamesAPlace(*field, node)) {
    return SetScalar(place, node, message->GetDescriptor()->FindFieldByName("swap"), message);
  }
  Message* below = message->GetReflection()->MutableMessage(message, field);
  if (node.kind == YamlNode::Kind::kScalar && HasShorthand(*field->message_type())) {
    return SetScalar(place, node, field->message_type()->field(0), below);
  }
  return MergeNode(place, node, below);
}

absl::Status MergeMap(const Place& place, const YamlNode& node, const FieldDescriptor* field,
                      Message* message) {
  if (node.kind == YamlNode::Kind::kNull && node.line > 0) return absl::OkStatus();
  if (MayBeAuto(*field) && IsPlainScalar(node) && node.text == kAutoEntry) {
    MutableEntry(kAutoEntry, field, message);
    return absl::OkStatus();
  }
  if (node.kind != YamlNode::Kind::kMap) {
    return WrongType(place, node, MayBeAuto(*field) ? "a map, or auto" : "a map");
  }
  for (size_t i = 0; i < node.keys.size(); ++i) {
    RETURN_IF_ERROR(MergeField(place.Below(node.keys[i]), node.key_lines[i], node.items[i],
                               field->message_type()->map_value(),
                               MutableEntry(node.keys[i], field, message)));
  }
  return absl::OkStatus();
}

// Merges a node. An empty file or section (`compression:` with all lines commented out) is no
// error, but an override (line 0) must say something.
absl::Status MergeNode(const Place& place, const YamlNode& node, Message* message) {
  const bool is_in_file = node.line > 0 || place.path.empty();
  if (node.kind == YamlNode::Kind::kNull && is_in_file) return absl::OkStatus();
  const Descriptor& descriptor = *message->GetDescriptor();
  const std::string names = absl::StrJoin(FieldNames(descriptor), ", ");
  if (node.kind != YamlNode::Kind::kMap) return WrongType(place, node, "a map of " + names);
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& key = node.keys[i];
    const FieldDescriptor* field = descriptor.FindFieldByName(key);
    if (field == nullptr) {
      return Error(place.Below(key), node.key_lines[i],
                   absl::StrCat("unknown field; did you mean ", Suggestion(descriptor, key),
                                "? Fields here: ", names));
    }
    RETURN_IF_ERROR(MergeField(place.Below(key), node.key_lines[i], node.items[i], field, message));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MergeTree(const YamlNode& root, const std::string& source, Message* message,
                       Origins* origins) {
  return MergeNode({source, "", origins}, root, message);
}

absl::Status MergeYaml(const std::string& text, const std::string& source, Message* message,
                       Origins* origins) {
  ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, source));
  return MergeTree(root, source, message, origins);
}

}  // namespace thinwire
