// The weights that a run has left: those of its end, or of a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace thinwire {

// A run and a step of it, as people name them: "runs/mine", "runs/mine@1200", "runs/mine@best".
struct RunAt {
  std::string run;                  // its folder
  std::optional<std::string> step;  // "1200", "best"; not set: the run's end
};
// Takes a text apart, unless a file or folder has that name as a whole.
RunAt ParseRunAt(const std::string& text);

// Weights that a run has left, and the experiment that they belong to.
struct RunWeights {
  std::string model;       // folder of the weights
  std::string path, text;  // of the experiment as it was recorded: its place for errors, its YAML
  // Number of epochs that it has trained, the last perhaps in part; not set where nothing says so.
  std::optional<uint32_t> epochs;
};
// Finds the weights, of a checkpoint only if its files are what its manifest says. NotFound with
// the reason if no run is recorded there, or if it has no such checkpoint; InvalidArgument for a
// step that is none.
absl::StatusOr<RunWeights> WeightsOf(const RunAt& at);

}  // namespace thinwire
