// Checks and defaults of messages with a choosing field (alternatives.h), and what a message that
// is merged over another replaces.
#pragma once

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "config/codec_config.h"
#include "google/protobuf/message.h"
#include "proto/experiment.pb.h"

namespace thinwire {

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
