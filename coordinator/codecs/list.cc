#include "coordinator/codecs/list.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compress/spec.h"
#include "compress/spec_parameters.h"
#include "config/choices.h"
#include "google/protobuf/descriptor.h"
#include "nlohmann/json.hpp"
#include "proto/experiment.pb.h"

namespace thinwire {
namespace {

struct Entry {
  std::string name, what;
  std::vector<std::pair<std::string, std::string>> parameters;  // name, default; empty: none
};

constexpr struct {
  CodecKind kind;
  const char* what;
} kCodecs[] = {
    {CodecKind::kNone, "the tensor's own bytes"},
    {CodecKind::kFp16, "16-bit floats, scaled by a power of two per message"},
    {CodecKind::kBf16, "the upper half of each fp32"},
    {CodecKind::kFp8, "8-bit floats, scaled by a power of two per message"},
    {CodecKind::kUniform, "codes of 1 to 8 bits on a uniform grid"},
    {CodecKind::kTopK, "the K entries of largest magnitude, and where they stood"},
    {CodecKind::kRandomK, "K random entries; both ends draw the same positions"},
    {CodecKind::kThreshold, "entries of at least some magnitude"},
    {CodecKind::kBlockwise8, "8-bit codebook with one absolute maximum per block (SWARM)"},
    {CodecKind::kLowRank, "two factors of a warm-started power iteration (PowerSGD)"},
    {CodecKind::kPlugin, "your own library, see docs/add_a_codec.md"},
};

constexpr struct {
  const char* kind;
  const char* what;
} kFeedback[] = {
    {"none", "what a codec leaves out is lost"},
    {"ef", "what was left out is added to the next message of the same key"},
    {"lazy", "ef whose residual goes to the next microbatch (Optimus-CC)"},
    {"ef21", "differences from a state that both ends keep"},
    {"aq_sgd", "ef21 per sample, the first message of each exact (AQ-SGD)"},
    {"ef_mixed_a", "ef for gradients, none for activations"},
    {"ef_mixed_b", "half of the budget for the tensor, half for the residual"},
};

template <typename T>
std::string Default(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return Name(value);
  } else {
    return value == 0 ? "" : absl::StrCat(value);
  }
}

// The parameters of every variant: some come with another one's value only.
Entry CodecEntry(CodecKind kind, const char* what) {
  Entry entry{Name(kind), what, {}};
  CodecSpec plain = DefaultSpec(kind), grouped = plain, uniform = plain, rotated = plain;
  grouped.scope = Scope::kGroup;
  uniform.values = Values::kUniform;
  rotated.rotation = Rotation::kHadamard;
  rotated.rotation_block = 1024;  // as experiment files have it
  for (const CodecSpec& spec : {plain, grouped, uniform, rotated}) {
    VisitParameters(spec, [&](const char* name, const auto& value, bool) {
      const auto known = [&](const auto& parameter) { return parameter.first == name; };
      auto& all = entry.parameters;
      if (std::any_of(all.begin(), all.end(), known)) return;
      all.emplace_back(name, Default(value));
    });
  }
  if (kind == CodecKind::kPlugin) entry.parameters = {{"plugin", ""}, {"parameters", "{}"}};
  return entry;
}

// What config fills in for an absent field is the default.
absl::StatusOr<Entry> FeedbackEntry(const std::string& kind, const char* what) {
  FeedbackConfig config;
  config.set_kind(kind);
  RETURN_IF_ERROR(ResolveChoice("feedback", &config));
  Entry entry{kind, what, {}};
  const google::protobuf::Reflection* reflection = config.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(config, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->name() == "kind") continue;
    std::string value;
    switch (field->cpp_type()) {
      case google::protobuf::FieldDescriptor::CPPTYPE_STRING:
        value = reflection->GetString(config, field);
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE:
        value = absl::StrCat(reflection->GetDouble(config, field));
        break;
      case google::protobuf::FieldDescriptor::CPPTYPE_UINT32:
        value = absl::StrCat(reflection->GetUInt32(config, field));
        break;
      default:
        value = absl::StrCat(reflection->GetUInt64(config, field));
    }
    entry.parameters.emplace_back(field->name(), value);
  }
  return entry;
}

std::string Table(const char* title, const std::vector<Entry>& entries) {
  std::string text = absl::StrCat("| ", title, " | is | parameters = defaults |\n|---|---|---|\n");
  for (const Entry& entry : entries) {
    const std::string parameters =
        absl::StrJoin(entry.parameters, ", ", [](std::string* out, const auto& parameter) {
          absl::StrAppend(out, parameter.first, parameter.second.empty() ? "" : "=",
                          parameter.second);
        });
    absl::StrAppend(&text, "| ", entry.name, " | ", entry.what, " | ", parameters, " |\n");
  }
  return text;
}

nlohmann::ordered_json Json(const std::vector<Entry>& entries) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Entry& entry : entries) {
    nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
    for (const auto& [name, value] : entry.parameters) parameters[name] = value;
    all.push_back({{"name", entry.name}, {"is", entry.what}, {"parameters", parameters}});
  }
  return all;
}

}  // namespace

absl::StatusOr<std::string> CodecList(TextFormat format) {
  std::vector<Entry> codecs, feedback;
  for (const auto& codec : kCodecs) codecs.push_back(CodecEntry(codec.kind, codec.what));
  for (const auto& kind : kFeedback) {
    ASSIGN_OR_RETURN(Entry entry, FeedbackEntry(kind.kind, kind.what));
    feedback.push_back(std::move(entry));
  }
  if (format == TextFormat::kJson) {
    return nlohmann::ordered_json{{"codecs", Json(codecs)}, {"feedback", Json(feedback)}}.dump(2) +
           "\n";
  }
  return absl::StrCat(Table("codec", codecs), "\n", Table("feedback", feedback),
                      "\nA parameter without a default is off until it is given.\n");
}

}  // namespace thinwire
