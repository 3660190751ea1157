// `thinwire checkpoint`: lists a run's checkpoints, verifies them, exports the model of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/session/interruption.h"

namespace thinwire {

// Arguments of the command.
struct CheckpointFlags {
  std::string action;            // list, verify, export
  std::string run;               // folder of the run
  std::optional<uint64_t> step;  // verify: only this one; export: this one, not the newest
  std::string out;               // export: target folder; empty: RUN/model-step-N
  bool merge = false;            // export: with adapters in the weights
};

// Returns the process's exit code; errors go to stderr.
int CheckpointCommand(const CheckpointFlags& flags, Interruption* interruption);

}  // namespace thinwire
