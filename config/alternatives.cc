#include "config/alternatives.h"

#include <map>
#include <string_view>

#include "base/parameters.h"
#include "compress/codec_table.h"
#include "compress/feedback/spec.h"
#include "compress/spec_parameters.h"
#include "config/replicas_spec.h"
#include "data/dataset.h"
#include "models/bottleneck.h"
#include "models/model.h"
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
    if (known.is_text) data.fields.push_back({"corpus", ""});
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
      {"LayerConfig", Layers()},
  };
  const auto found = choices->find(message.GetDescriptor()->name());
  return found == choices->end() ? nullptr : &found->second;
}

}  // namespace thinwire
