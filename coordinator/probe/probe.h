// Gradients of the same batches with and without each codec, from stages that are yet to be leased.
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

struct ProbeTask {
  Experiment experiment;               // resolved; its codecs are not looked at
  std::optional<ModelShares> weights;  // none: the experiment's random ones
  uint32_t epochs_trained = 0;         // batches are those of the next epoch, augmented as it would
  int batches = 1;                     // the epoch's first ones
  std::vector<ProbeConfiguration> configurations;
};

// Trains nothing: configures the stages of `fleet` anew for every configuration, gives them the
// weights, and compares the parameter gradient of each batch with the one without codecs. Appends
// a row per configuration to *report and fills in what it knows of the rest; `on_progress` gets a
// line for each. Blocks. Errors as RunExperiment.
absl::Status RunProbe(const ProbeTask& task, Fleet* fleet,
                      const std::function<void(const std::string&)>& on_progress,
                      ProbeReport* report);

}  // namespace thinwire
