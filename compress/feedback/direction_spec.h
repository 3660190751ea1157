// What one direction of a cut does to its messages: the checked form of an experiment's
// `activations` and `gradients`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compress/feedback/spec.h"
#include "compress/level.h"
#include "compress/spec.h"

namespace thinwire {

// What a message with NaN or infinity that the codec cannot carry is.
enum class OnNonfinite : uint8_t {
  kError = 0,  // the run's end
  kPass = 1,   // sent exactly
};

// Names as experiment files spell them, and back as in spec.h.
const char* Name(OnNonfinite value);
absl::Status FromName(const std::string& name, OnNonfinite* to);
std::vector<OnNonfinite> AllOnNonfinite();

struct DirectionSpec {
  CodecSpec codec;
  LevelSpec level;
  FeedbackSpec feedback;
  OnNonfinite on_nonfinite = OnNonfinite::kError;
  // Gradients: compressed only if its receiver is in the cool-down of 1F1B (schedule.h), taking
  // every segment for a stage (Optimus-CC, arXiv 2301.09830).
  bool epilogue_only = false;
};

}  // namespace thinwire
