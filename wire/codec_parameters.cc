#include "wire/codec_parameters.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/spec_parameters.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

// Fields have the names of the parameters, so a new parameter needs no line in this file.
const FieldDescriptor* Field(const char* name) {
  return CodecParameters::descriptor()->FindFieldByName(name);
}

template <typename T>
void Write(const char* name, T value, CodecParameters* to) {
  const Reflection* reflection = to->GetReflection();
  if constexpr (std::is_same_v<T, bool>) {
    reflection->SetBool(to, Field(name), value);
  } else if constexpr (std::is_same_v<T, double>) {
    reflection->SetDouble(to, Field(name), value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    reflection->SetUInt64(to, Field(name), value);
  } else if constexpr (std::is_enum_v<T>) {
    reflection->SetEnumValue(to, Field(name), static_cast<int>(value));
  } else {
    reflection->SetUInt32(to, Field(name), value);
  }
}

// Converts a number to an enum value that has a name; InvalidArgument for any other number.
template <typename Enum>
absl::Status ToEnum(const char* name, int number, Enum* to) {
  const auto value = static_cast<Enum>(number);
  if (number >= 0 && number <= UINT8_MAX && std::string(Name(value)) != "unknown") {
    *to = value;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("codec.", name, " is ", number, ", want a known number"));
}

template <typename T>
absl::Status Read(const CodecParameters& from, const char* name, T* to) {
  const Reflection* reflection = from.GetReflection();
  if constexpr (std::is_same_v<T, bool>) {
    *to = reflection->GetBool(from, Field(name));
  } else if constexpr (std::is_same_v<T, double>) {
    *to = reflection->GetDouble(from, Field(name));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    *to = reflection->GetUInt64(from, Field(name));
  } else if constexpr (std::is_enum_v<T>) {
    return ToEnum(name, reflection->GetEnumValue(from, Field(name)), to);
  } else {
    *to = reflection->GetUInt32(from, Field(name));
  }
  return absl::OkStatus();
}

// Checks that only `kind` and fields named in `own` are set.
absl::Status CheckNoOthers(const CodecParameters& parameters, const CodecSpec& spec,
                           const std::vector<std::string>& own) {
  std::vector<const FieldDescriptor*> set;
  parameters.GetReflection()->ListFields(parameters, &set);
  for (const FieldDescriptor* field : set) {
    const std::string& name = field->name();
    if (name == "kind" || std::count(own.begin(), own.end(), name) > 0) continue;
    std::string value;
    google::protobuf::TextFormat::PrintFieldValueToString(parameters, field, -1, &value);
    return absl::InvalidArgumentError(absl::StrCat(
        "codec.", name, " is ", value, ", want none: it has no say in ", spec.ToString()));
  }
  return absl::OkStatus();
}

}  // namespace

CodecParameters ToParameters(const CodecSpec& spec) {
  CodecParameters to;
  to.set_kind(static_cast<CodecParameters::Kind>(spec.kind));
  VisitParameters(
      spec, [&](const char* name, const auto& value, const auto&) { Write(name, value, &to); });
  return to;
}

absl::StatusOr<CodecSpec> FromParameters(const CodecParameters& parameters) {
  CodecSpec spec;
  RETURN_IF_ERROR(ToEnum("kind", parameters.kind(), &spec.kind));
  absl::Status status;
  std::vector<std::string> own;
  VisitParameters(spec, [&](const char* name, auto& value, const auto&) {
    status.Update(Read(parameters, name, &value));
    own.push_back(name);
  });
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckNoOthers(parameters, spec, own));
  return spec;
}

}  // namespace thinwire
