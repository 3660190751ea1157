// Reading and writing a message's fields by name, as members of a specification. Numbers and
// booleans are copied; values of an enum are converted by their names (Name and FromName beside the
// enum). And what a name that is no field probably means.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace thinwire {

// Returns null if there is no such field.
const google::protobuf::FieldDescriptor* FieldOf(const google::protobuf::Message& message,
                                                 const std::string& name);

// Returns true also for a list or a map with at least one element.
bool IsSet(const google::protobuf::Message& message,
           const google::protobuf::FieldDescriptor* field);
bool IsSet(const google::protobuf::Message& message, const std::string& name);

// Returns the fields for which IsSet, in the order of their numbers, which is the schema's.
std::vector<const google::protobuf::FieldDescriptor*> SetFields(
    const google::protobuf::Message& message);

std::vector<std::string> FieldNames(const google::protobuf::Descriptor& section);

// Access to maps from strings. Reflection shows a map as a list of messages {key, value}, in any
// order; here they are by their keys.
std::map<std::string, const google::protobuf::Message*> EntriesOf(
    const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* map);
// Returns the index in that list; -1 if there is no such key.
int IndexOfEntry(const google::protobuf::Message& message,
                 const google::protobuf::FieldDescriptor* map, const std::string& key);
// Adds the entry if it is not there.
google::protobuf::Message* MutableEntry(const std::string& key,
                                        const google::protobuf::FieldDescriptor* map,
                                        google::protobuf::Message* message);

// Sets *to from the field, if it is set; a field that is a message stands for its first field.
// InvalidArgument for a name that the enum does not have.
template <typename T>
absl::Status ReadField(const google::protobuf::Message& from, const char* name, T* to) {
  using Field = google::protobuf::FieldDescriptor;
  const Field* field = FieldOf(from, name);
  const google::protobuf::Reflection* reflection = from.GetReflection();
  if (!IsSet(from, field)) return absl::OkStatus();
  if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
    const std::string first = field->message_type()->field(0)->name();
    return ReadField(reflection->GetMessage(from, field), first.c_str(), to);
  }
  if constexpr (std::is_enum_v<T>) {
    return FromName(reflection->GetString(from, field), to);
  } else if constexpr (std::is_same_v<T, std::string>) {
    *to = reflection->GetString(from, field);
  } else if (field->cpp_type() == Field::CPPTYPE_BOOL) {
    *to = static_cast<T>(reflection->GetBool(from, field));
  } else if (field->cpp_type() == Field::CPPTYPE_DOUBLE) {
    *to = static_cast<T>(reflection->GetDouble(from, field));
  } else if (field->cpp_type() == Field::CPPTYPE_UINT64) {
    *to = static_cast<T>(reflection->GetUInt64(from, field));
  } else {
    *to = static_cast<T>(reflection->GetUInt32(from, field));
  }
  return absl::OkStatus();
}

// Sets the field to `value`; a number must fit the field. A negative one stands for none, and
// nothing is set.
template <typename T>
void WriteField(const char* name, const T& value, google::protobuf::Message* to) {
  using Field = google::protobuf::FieldDescriptor;
  const Field* field = FieldOf(*to, name);
  const google::protobuf::Reflection* reflection = to->GetReflection();
  if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
    const std::string first = field->message_type()->field(0)->name();
    WriteField(first.c_str(), value, reflection->MutableMessage(to, field));
    return;
  }
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    if (value < 0) return;
  }
  if constexpr (std::is_enum_v<T>) {
    reflection->SetString(to, field, Name(value));
  } else if (field->cpp_type() == Field::CPPTYPE_BOOL) {
    reflection->SetBool(to, field, static_cast<bool>(value));
  } else if (field->cpp_type() == Field::CPPTYPE_DOUBLE) {
    reflection->SetDouble(to, field, static_cast<double>(value));
  } else if (field->cpp_type() == Field::CPPTYPE_UINT64) {
    reflection->SetUInt64(to, field, static_cast<uint64_t>(value));
  } else {
    reflection->SetUInt32(to, field, static_cast<uint32_t>(value));
  }
}

// Sets all parameters that VisitParameters visits (base/parameters.h), except lists of layers.
template <typename Spec>
absl::Status ReadParameters(const google::protobuf::Message& from, Spec* spec) {
  absl::Status status;
  VisitParameters(*spec, [&](const char* name, auto& to, const auto&) {
    using T = std::decay_t<decltype(to)>;
    if constexpr (!std::is_class_v<T> || std::is_same_v<T, std::string>) {
      status.Update(ReadField(from, name, &to));
    }
  });
  return status;
}

// Returns the field of an experiment at `path`, in which lists and maps have no steps; null if
// there is none.
const google::protobuf::FieldDescriptor* FieldAt(const std::string& path);

// Returns what `name`, which is no field of `section`, probably means: a field of that section, or
// the path from the root of a field elsewhere. A synonym (synonyms.h) takes precedence over a
// misspelling, and that section over others. Case, '-' and '_' are ignored.
std::string Suggestion(const google::protobuf::Descriptor& section, const std::string& name);

// Returns the path from the root of the field that `name` alone stands for; empty if there is none.
std::string PathOf(const std::string& name);

}  // namespace thinwire
