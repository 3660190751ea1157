// Targets of an evaluation: weights, and the experiment whose model and data these belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/run/model_shares.h"
#include "coordinator/session/session.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// A target as a user names it.
struct TargetOptions {
  // A run, a step of one (run_weights.h), an experiment file, or a model's folder (published.h) by
  // its path or its name in the hub (base/hub_cache.h).
  std::string target;
  std::string data;                    // of a model's folder: as FileToEvaluate takes it
  uint32_t samples = 0;                // most of the test set; 0: as the experiment says
  std::vector<std::string> overrides;  // path=value
};

struct EvaluationTarget {
  Experiment experiment;               // resolved; of one pipeline
  std::optional<ModelShares> weights;  // not set: random ones, as the experiment has no `init`
  std::string dir;                     // folder of the weights; empty if not set
  std::optional<uint32_t> epochs;      // of a run: as RunWeights has them
};

// Opens a target. Without addresses in `session` one stage has all segments, unless an override
// says otherwise. NotFound for what is none of these. InvalidArgument if `data` is absent for a
// model's folder or given for anything else; if tokens of the text are not those that the model was
// trained with; and errors of LoadForStages and of the weights.
absl::StatusOr<EvaluationTarget> OpenTarget(const TargetOptions& options, SessionOptions* session);

}  // namespace thinwire
