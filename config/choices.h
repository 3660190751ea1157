// Choices in an experiment: the values of a message's choosing field (a direction's codec, the name
// of a learning rate schedule, the kind of a layer) and the other fields that belong to each value.
// They come from the folders that own codecs, feedback, layers, models, optimizers and schedules.
// Also checks and defaults of such messages, and what one that is merged over another replaces.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "config/codec_config.h"
#include "google/protobuf/message.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// A field that belongs to an alternative.
struct ChoiceField {
  std::string name;
  std::string fallback;     // default in YAML; empty: none
  bool is_written = false;  // True if the default is filled in where the field is absent.
};

// One value of a choosing field.
struct Alternative {
  std::string name;
  std::vector<ChoiceField> fields;    // fields that belong to it
  std::vector<std::string> required;  // required fields, among `fields` or the common ones
};

// All values of a choosing field.
struct Choice {
  // Name of the choosing field.
  std::string field;
  std::string absent;               // its value when absent; empty: it is required
  std::vector<std::string> common;  // fields that belong to every alternative
  std::vector<Alternative> alternatives;
};

// Returns the choice of a DirectionConfig, FeedbackConfig, BottleneckConfig, LrScheduleConfig,
// OptimizerConfig, OuterConfig, ReplicasConfig, DataConfig, ModelConfig, RopeScalingConfig or
// LayerConfig; null for other messages. Which defaults of a codec are filled in depends on the
// direction's other fields: see FillCodec (codec_config.h).
const Choice* ChoiceOf(const google::protobuf::Message& message);

// Fills in the choice, and the fields that belong to it, where they are absent and have a default.
// `*message` must have a choosing field. InvalidArgument names `path` and the fault: an unknown
// choice, no choice where it is required, a field that belongs to other choices only, or an absent
// required field.
absl::Status ResolveChoice(const std::string& path, google::protobuf::Message* message);

// Prepares `*message`, of any kind, for a merge with `next`. Wherever `next` makes another choice,
// the fields that belong only to the former choice are cleared, so that the new one starts from its
// own defaults. If `next` sets one of a direction's `ratio` and `k`, the other is cleared.
void ForgetReplaced(const google::protobuf::Message& next, google::protobuf::Message* message);

// Returns the general message with a cut's own merged over it. Fields of the general one are
// dropped if the own one's choices replace them or make them meaningless.
template <typename Config>
Config Overlaid(const Config& general, const Config& own) {
  Config merged = general;
  ForgetReplaced(own, &merged);
  merged.MergeFrom(own);
  if constexpr (std::is_same_v<Config, DirectionConfig>) {
    ForgetSilenced(general, own, merged, &merged);
  }
  return merged;
}

}  // namespace thinwire
