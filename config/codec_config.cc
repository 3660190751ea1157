#include "config/codec_config.h"

#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "compress/spec_parameters.h"
#include "google/protobuf/descriptor.h"

namespace thinwire {
namespace {

template <typename T>
void Set(const char* name, const T& value, DirectionConfig* config) {
  const google::protobuf::FieldDescriptor* field =
      DirectionConfig::descriptor()->FindFieldByName(name);
  const google::protobuf::Reflection* reflection = config->GetReflection();
  if constexpr (std::is_enum_v<T>) {
    reflection->SetString(config, field, Name(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    reflection->SetBool(config, field, value);
  } else if constexpr (std::is_same_v<T, double>) {
    reflection->SetDouble(config, field, value);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    reflection->SetUInt64(config, field, value);
  } else {
    reflection->SetUInt32(config, field, value);
  }
}

}  // namespace

absl::StatusOr<DirectionConfig> ConfigOf(const CodecSpec& spec) {
  if (spec.kind == CodecKind::kPlugin) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.ToString(), ": names no library; give plugins in an experiment file"));
  }
  DirectionConfig config;
  config.set_codec(Name(spec.kind));
  VisitParameters(spec, [&](const char* name, const auto& value, bool is_rare) {
    using T = std::decay_t<decltype(value)>;
    if (!is_rare || value != T{}) Set(name, value, &config);
  });
  return config;
}

}  // namespace thinwire
