// What the choosing field of a message may say (a direction's codec, the name of a learning rate
// schedule, the kind of a layer), and which other fields belong to each choice: as the folders
// that own codecs, feedback, layers, models, optimizers and schedules list them.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/message.h"

namespace thinwire {

struct ChoiceField {
  std::string name;
  std::string fallback;     // the default as YAML has it; empty: none
  bool is_written = false;  // where it is absent the default is filled in
};

struct Alternative {
  std::string name;
  std::vector<ChoiceField> fields;    // that belong to it
  std::vector<std::string> required;  // some of `fields`, or of the common ones
};

struct Choice {
  std::string field;
  std::string absent;               // what an absent choice means; empty: it is required
  std::vector<std::string> common;  // fields that belong to every alternative
  std::vector<Alternative> alternatives;
};

// The choice that a DirectionConfig, FeedbackConfig, BottleneckConfig, LrScheduleConfig,
// OptimizerConfig, DataConfig, ModelConfig or LayerConfig makes; other messages make none. Which
// defaults of a codec are filled in depends on the direction's other fields: see FillCodec
// (codec_config.h).
const Choice& ChoiceOf(const google::protobuf::Message& message);

}  // namespace thinwire
