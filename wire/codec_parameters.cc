#include "wire/codec_parameters.h"

#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/spec_parameters.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

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
  } else {  // enums and uint32_t
    reflection->SetUInt32(to, Field(name), static_cast<uint32_t>(value));
  }
}

// The value of an enum whose name is known; InvalidArgument for any other number.
template <typename Enum>
absl::Status ToEnum(const char* name, uint32_t number, Enum* to) {
  const auto value = static_cast<Enum>(number);
  if (number <= UINT8_MAX && std::string(Name(value)) != "unknown") {
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
    return ToEnum(name, reflection->GetUInt32(from, Field(name)), to);
  } else {
    *to = reflection->GetUInt32(from, Field(name));
  }
  return absl::OkStatus();
}

}  // namespace

CodecParameters ToParameters(const CodecSpec& spec) {
  CodecParameters to;
  to.set_kind(static_cast<uint32_t>(spec.kind));
  VisitParameters(
      spec, [&](const char* name, const auto& value, const auto&) { Write(name, value, &to); });
  return to;
}

absl::StatusOr<CodecSpec> FromParameters(const CodecParameters& parameters) {
  CodecSpec spec;
  RETURN_IF_ERROR(ToEnum("kind", parameters.kind(), &spec.kind));
  absl::Status status;
  VisitParameters(spec, [&](const char* name, auto& value, const auto&) {
    status.Update(Read(parameters, name, &value));
  });
  RETURN_IF_ERROR(status);
  return spec;
}

}  // namespace thinwire
