// Comparison of the gradients of the same batches with and without each codec, computed by stages.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/fleet/fleet.h"
#include "coordinator/probe/configurations.h"
#include "coordinator/run/model_shares.h"
#include "proto/experiment.pb.h"
#include "proto/probe.pb.h"

namespace thinwire {

// Model and codecs to probe.
struct ProbeTask {
  Experiment experiment;               // resolved; its codecs are ignored
  std::optional<ModelShares> weights;  // not set: the experiment's random initial ones
  // The batches are those of the following epoch, with its augmentation.
  uint32_t epochs_trained = 0;
  int batches = 1;  // number of batches, from the beginning of the epoch
  std::vector<ProbeConfiguration> configurations;
};

// Compares gradients; trains nothing. It configures the stages of `fleet` again for every
// configuration, sends them the weights, and compares the parameter gradient of each batch with
// that without codecs. Appends a row per configuration to *report and fills in the rest that it
// knows; `on_progress` gets a line for each. Blocks. Errors as RunExperiment.
absl::Status RunProbe(const ProbeTask& task, Fleet* fleet,
                      const std::function<void(const std::string&)>& on_progress,
                      ProbeReport* report);

}  // namespace thinwire
