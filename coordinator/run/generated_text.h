// Generation of text, token by token, by the stages of a trained language model.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_shares.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

// Text to generate.
struct TextTask {
  Experiment experiment;  // resolved, of a language model
  ModelShares weights;
  std::vector<int32_t>
      prompt;          // at least one token; if they exceed the context, only the last ones count
  int64_t tokens = 0;  // most to draw
  bool compressed = true;  // True: with the codecs of the experiment.
  Sampling sampling = {};
};

// Totals of a generation.
struct TextTotals {
  int64_t tokens = 0;       // number drawn
  double seconds = 0;       // from the first call to the last answer
  uint64_t wire_bytes = 0;  // sent across cuts by all stages
};

// Returns InvalidArgument if the experiment cannot generate text: its model takes no tokens or, if
// `compressed`, a cut has a codec that does not work position by position (IsCausal).
absl::Status CheckGenerates(const Experiment& experiment, bool compressed);

// Configures the stages of `fleet`, which must not be leased yet, sends them the weights and draws
// tokens, until `on_token`, which gets each at once, returns false or an error. When the context is
// full, its later half becomes the beginning of a new one. `totals` is filled in even after an
// error. Blocks. Errors as RunExperiment.
absl::Status GenerateText(const TextTask& task, Fleet* fleet,
                          const std::function<absl::StatusOr<bool>(int32_t id)>& on_token,
                          TextTotals* totals);

}  // namespace thinwire
