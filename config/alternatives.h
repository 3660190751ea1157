// Choices in an experiment: the values of a message's choosing field (a direction's codec, the name
// of a learning rate schedule, the kind of a layer) and the other fields that belong to each value.
// They come from the folders that own codecs, feedback, layers, models, optimizers and schedules.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/message.h"

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
// OptimizerConfig, OuterConfig, ReplicasConfig, DataConfig, ModelConfig or LayerConfig; null for
// other messages. Which defaults
// of a codec are filled in depends on the direction's other fields: see FillCodec (codec_config.h).
const Choice* ChoiceOf(const google::protobuf::Message& message);

}  // namespace thinwire
