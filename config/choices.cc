#include "config/choices.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parameters.h"
#include "base/status.h"
#include "compress/codec_table.h"
#include "compress/feedback/spec.h"
#include "compress/spec_parameters.h"
#include "config/checks.h"
#include "config/fields.h"
#include "config/replicas_spec.h"
#include "config/yaml_message.h"
#include "data/dataset.h"
#include "models/bottleneck.h"
#include "models/model.h"
#include "models/rotary.h"
#include "models/zoo.h"
#include "nn/lr_schedule.h"
#include "nn/optimizer_spec.h"

namespace thinwire {
namespace {

// Returns the fields and defaults of a new specification.
template <typename Spec>
Alternative FromSpec(const char* name, const Spec& spec) {
  Alternative alternative{name, {}, {}};
  VisitParameters(spec, [&](const char* field, const auto& value, Presence presence) {
    alternative.fields.push_back({field, DefaultText(value, presence), IsFilledIn(presence)});
    if (presence == Presence::kRequired) alternative.required.push_back(field);
  });
  return alternative;
}

template <typename Spec, typename Kind>
Spec OfKind(Kind kind) {
  Spec spec;
  spec.kind = kind;
  return spec;
}

// `make` returns the specification of a kind with its defaults.
template <typename Spec, typename Kind>
std::vector<Alternative> FromKinds(const std::vector<Kind>& kinds,
                                   Spec (*make)(Kind) = OfKind<Spec, Kind>) {
  std::vector<Alternative> alternatives;
  for (const Kind kind : kinds) alternatives.push_back(FromSpec(Name(kind), make(kind)));
  return alternatives;
}

Alternative Codec(const CodecRow& row) {
  Alternative codec{row.name, {}, {}};
  const CodecSpec spec = DefaultSpec(row.value);
  VisitAllParameters(spec, [&](const char* name, const auto&, const auto& use) {
    if (name == std::string_view("lossless")) return;  // belongs to every codec
    codec.fields.push_back({name, DefaultText(use.fallback, use.presence)});
    const bool is_required = use.presence == Presence::kRequired && use.unmet == nullptr;
    if (is_required) codec.required.push_back(name);
  });
  if (row.is_plugin) codec.fields.push_back({"parameters", kNoPluginParameters});
  if (row.level != LevelField::kNone) codec.fields.push_back({"level", ""});
  return codec;
}

Choice Codecs() {
  Choice choice{"codec",
                Name(CodecSpec().kind),
                {"feedback", "lossless", "on_nonfinite", "epilogue_only"},
                {}};
  for (const CodecRow& row : CodecRows()) choice.alternatives.push_back(Codec(row));
  return choice;
}

Choice Feedback() {
  Choice choice{"kind", Name(FeedbackKind::kNone), {}, {}};
  for (const FeedbackPreset& preset : FeedbackPresets()) {
    choice.alternatives.push_back(FromSpec(preset.name, preset.spec));
  }
  return choice;
}

Choice DataSets() {
  Choice choice{"name",
                "",
                {"batch_size", "augment", "limit", "test_limit", "held_out", "verify", "shuffle"},
                {}};
  for (const KnownDataset& known : AllDatasets()) {
    Alternative data = FromSpec(known.name.c_str(), DefaultOptions(known));
    if (known.is_text || known.has_pictures) data.fields.push_back({"corpus", ""});
    if (known.has_documents) data.fields.insert(data.fields.end(), {{"chat", ""}, {"fields", ""}});
    choice.alternatives.push_back(data);
  }
  return choice;
}

Choice Models() {
  Choice choice{"name", "", {"classes"}, {}};
  for (const ModelOptions& model : KnownModels()) {
    choice.alternatives.push_back(FromSpec(model.name.c_str(), model));
  }
  choice.alternatives.push_back({kCustomModel, {{"blocks", ""}}, {"blocks"}});
  return choice;
}

Choice Replicas() {
  Choice choice{
      "sync",
      Name(ReplicasSpec().sync),
      {"count", "exchange", "contributions", "average", "stages", "link_mbit", "digest_every"},
      {}};
  choice.alternatives.push_back({Name(ReplicaSync::kStep), {}, {}});
  choice.alternatives.push_back({Name(ReplicaSync::kLocal),
                                 {{"every", ""},
                                  {"outer", ""},
                                  {"fragments", "1", true},
                                  {"overlap", "0", true},
                                  {"mix", ""}},
                                 {"every"}});
  return choice;
}

Choice Layers() {
  Choice choice{"kind", "", {"name"}, {}};
  for (const LayerKind kind : AllLayerKinds()) {
    Alternative layer = FromSpec(Name(kind), DefaultLayer(kind));
    if (HasName(kind)) layer.required.insert(layer.required.begin(), "name");
    choice.alternatives.push_back(layer);
  }
  return choice;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Names = std::vector<std::string>;

std::string Chosen(const Message& message, const Choice& choice) {
  if (!IsSet(message, choice.field)) return choice.absent;
  return message.GetReflection()->GetString(message, FieldOf(message, choice.field));
}

absl::StatusOr<const Alternative*> Find(const std::string& path, const Choice& choice,
                                        const std::string& chosen) {
  Names known;
  for (const Alternative& alternative : choice.alternatives) {
    if (alternative.name == chosen) return &alternative;
    known.push_back(alternative.name);
  }
  const std::string field = absl::StrCat(path, ".", choice.field);
  if (!chosen.empty()) return UnknownName(field, choice.field, chosen, known);
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": is required; known: ", absl::StrJoin(known, ", ")));
}

// Checks that all fields that are set belong to the alternative.
absl::Status CheckBelonging(const std::string& path, const Message& message, const Choice& choice,
                            const Alternative& chosen) {
  Names takes;
  for (const ChoiceField& field : chosen.fields) takes.push_back(field.name);
  takes.insert(takes.end(), choice.common.begin(), choice.common.end());
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    const std::string& name = field->name();
    const bool belongs =
        name == choice.field || std::find(takes.begin(), takes.end(), name) != takes.end();
    if (belongs || !IsSet(message, field)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ".", name, ": does not belong to ", choice.field, " ", chosen.name,
                     ", which takes ", takes.empty() ? "nothing" : absl::StrJoin(takes, ", ")));
  }
  return absl::OkStatus();
}

// Returns YAML of the defaults that are filled in.
std::string DefaultsOf(const Alternative& alternative, const Message& message) {
  std::string yaml;
  for (const ChoiceField& field : alternative.fields) {
    if (!field.is_written) continue;
    const bool is_text =
        FieldOf(message, field.name)->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    const char* const quote = is_text ? "\"" : "";
    absl::StrAppend(&yaml, field.name, ": ", quote, field.fallback, quote, "\n");
  }
  return yaml;
}

void ForgetReplacedChoice(const Choice& choice, const Message& next, Message* message) {
  if (!IsSet(*message, choice.field) || !IsSet(next, choice.field) ||
      Chosen(*message, choice) == Chosen(next, choice)) {
    return;
  }
  for (const Alternative& alternative : choice.alternatives) {
    for (const ChoiceField& field : alternative.fields) {
      message->GetReflection()->ClearField(message, FieldOf(*message, field.name));
    }
  }
}

// `ratio` and `k` replace each other. A new way of choosing the level replaces the old one, and a
// new table the old table.
void ForgetReplacedParameters(const DirectionConfig& next, DirectionConfig* direction) {
  const bool has_table = !next.level().by_epoch().empty();
  const bool had_table = !direction->level().by_epoch().empty();
  if (has_table || (next.level().has_target_error() && had_table)) direction->clear_level();
  if (next.has_k() && !next.has_ratio()) direction->clear_ratio();
  if (next.has_ratio() && !next.has_k()) direction->clear_k();
}

}  // namespace

const Choice* ChoiceOf(const google::protobuf::Message& message) {
  static const auto* const choices = new std::map<std::string, Choice>{
      {"DirectionConfig", Codecs()},
      {"FeedbackConfig", Feedback()},
      {"BottleneckConfig",
       {"kind",
        Name(BottleneckKind::kLinear),
        {},
        FromKinds<BottleneckSpec>(AllOf<BottleneckKind>())}},
      {"LrScheduleConfig",
       {"name",
        Name(LrScheduleSpec().kind),
        {"warmup_steps"},
        FromKinds(AllOf<LrScheduleSpec::Kind>(), DefaultLrSchedule)}},
      {"OptimizerConfig",
       {"name",
        Name(OptimizerSpec().kind),
        {"lr"},
        FromKinds(AllOf<OptimizerKind>(), DefaultOptimizer)}},
      {"OuterConfig",
       {"name", Name(OuterSpec().kind), {}, FromKinds(AllOf<OuterKind>(), DefaultOuter)}},
      {"ReplicasConfig", Replicas()},
      {"DataConfig", DataSets()},
      {"ModelConfig", Models()},
      {"RopeScalingConfig", {"type", "", {}, FromKinds<RopeScaling>(AllOf<RopeScalingKind>())}},
      {"LayerConfig", Layers()},
  };
  const auto found = choices->find(message.GetDescriptor()->name());
  return found == choices->end() ? nullptr : &found->second;
}

absl::Status ResolveChoice(const std::string& path, Message* message) {
  const Choice& choice = *ChoiceOf(*message);
  const std::string name = Chosen(*message, choice);
  ASSIGN_OR_RETURN(const Alternative* chosen, Find(path, choice, name));
  RETURN_IF_ERROR(CheckBelonging(path, *message, choice, *chosen));
  for (const std::string& required : chosen->required) {
    if (!IsSet(*message, required)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ".", required, ": is required with ",
                                                     choice.field, " ", chosen->name));
    }
  }
  const std::unique_ptr<Message> filled(message->New());
  RETURN_IF_ERROR(MergeYaml(DefaultsOf(*chosen, *message), "defaults", filled.get()));
  filled->GetReflection()->SetString(filled.get(), FieldOf(*filled, choice.field), name);
  filled->MergeFrom(*message);
  message->CopyFrom(*filled);
  if (auto* direction = dynamic_cast<DirectionConfig*>(message)) FillCodec(direction);
  return absl::OkStatus();
}

void ForgetReplaced(const Message& next, Message* message) {
  const Reflection* reflection = message->GetReflection();
  if (const Choice* choice = ChoiceOf(*message)) ForgetReplacedChoice(*choice, next, message);
  if (auto* direction = dynamic_cast<DirectionConfig*>(message)) {
    ForgetReplacedParameters(static_cast<const DirectionConfig&>(next), direction);
  }
  for (const FieldDescriptor* field : SetFields(next)) {
    if (field->message_type() == nullptr || !IsSet(*message, field)) continue;
    if (field->is_map()) {
      for (const auto& [key, entry] : EntriesOf(next, field)) {
        const int i = IndexOfEntry(*message, field, key);
        if (i >= 0) ForgetReplaced(*entry, reflection->MutableRepeatedMessage(message, field, i));
      }
    } else if (!field->is_repeated()) {
      ForgetReplaced(next.GetReflection()->GetMessage(next, field),
                     reflection->MutableMessage(message, field));
    }
  }
}

}  // namespace thinwire
