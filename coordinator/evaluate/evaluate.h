// Evaluation of one set of weights, without codecs and with each of several, by stages.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/run/model_shares.h"
#include "proto/evaluation.pb.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Weights and codecs to evaluate.
struct EvaluationTask {
  Experiment experiment;               // resolved
  std::optional<ModelShares> weights;  // not set: the experiment's random initial ones
  std::vector<CodecSpec> codecs;       // of activations, at all cuts
  // Epochs that the weights were trained for, of which random codecs draw; not set: all of them.
  std::optional<uint32_t> epochs;
  // Training samples, at most, that pass before the test set wherever codecs keep what messages
  // leave to the next ones (CodecSpec::leaves_carry). 0: each message is like the first.
  uint64_t calibration_samples = 0;
};

// Returns the resolved `experiment` with this codec for activations at all its cuts and no other
// compression of them: no feedback, no warm-up, no overrides, and no codecs of sums. Bottlenecks
// stay, as the weights have adapted to them. Resolved again.
absl::StatusOr<Experiment> WithActivationCodec(Experiment experiment, const CodecSpec& codec);

// Evaluates: without codecs, unless a bottleneck forbids it; as the experiment has it, if that is
// something else; with each codec. It configures the stages of `fleet` again for each codec and
// sends them the weights. Appends a row for each to *report and fills in the rest that it knows;
// `on_row` gets each at once. Blocks. Errors as RunExperiment.
absl::Status RunEvaluations(const EvaluationTask& task, Fleet* fleet,
                            const std::function<void(const EvaluateRow&)>& on_row,
                            EvaluateReport* report);

}  // namespace thinwire
