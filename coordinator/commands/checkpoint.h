// `thinwire checkpoint`: what checkpoints a run has, whether they are whole, and the model of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/session/interruption.h"

namespace thinwire {

struct CheckpointFlags {
  std::string action;            // list, verify, export
  std::string run;               // its folder
  std::optional<uint64_t> step;  // verify: this one alone; export: this one, not the newest
  std::string out;               // export: where to; empty: RUN/model-step-N
};

// Returns the process's exit code; what is wrong goes to stderr.
int CheckpointCommand(const CheckpointFlags& flags, Interruption* interruption);

}  // namespace thinwire
