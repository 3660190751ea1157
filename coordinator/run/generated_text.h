// Text from a trained language model, token after token, drawn by its own stages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_shares.h"
#include "proto/experiment.pb.h"
#include "proto/stage.pb.h"

namespace thinwire {

struct TextTask {
  Experiment experiment;  // resolved, of a language model
  ModelShares weights;
  std::vector<int32_t>
      prompt;              // at least one token; those that the context has no room for are cut
  int64_t tokens = 0;      // to draw
  bool compressed = true;  // with the codecs of the experiment
  Sampling sampling = {};
};

struct TextTotals {
  int64_t tokens = 0;       // drawn
  double seconds = 0;       // from the first call to the last answer
  uint64_t wire_bytes = 0;  // that all stages sent across cuts
};

// InvalidArgument for an experiment that generates no text: a model that takes no tokens and,
// `compressed`, a cut whose codec does not code position by position (IsCausal).
absl::Status CheckGenerates(const Experiment& experiment, bool compressed);

// Configures the stages of `fleet`, which are yet to be leased, gives them the weights and draws
// tokens; `on_token` gets each as it comes, and its error ends the text. When the context is full,
// the later half of it becomes the beginning of a new one. `totals` always tells what was reached.
// Blocks. Errors as RunExperiment.
absl::Status GenerateText(const TextTask& task, Fleet* fleet,
                          const std::function<absl::Status(int32_t id)>& on_token,
                          TextTotals* totals);

}  // namespace thinwire
