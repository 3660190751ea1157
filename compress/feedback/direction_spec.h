// Specification of one direction of a cut: the checked form of an experiment's `activations` and
// `gradients`.
#pragma once

#include <cstdint>

#include "base/enum_names.h"
#include "compress/feedback/spec.h"
#include "compress/level.h"
#include "compress/spec.h"

namespace thinwire {

// Treatment of a message with NaN or infinity if the codec cannot carry them.
enum class OnNonfinite : uint8_t {
  kError = 0,  // the run fails
  kPass = 1,   // the message is sent exactly
};

// Returns the names as experiment files spell them (base/enum_names.h).
NameTable<OnNonfinite> TableOf(OnNonfinite);

// Everything that one direction does to its messages.
struct DirectionSpec {
  CodecSpec codec;
  LevelSpec level;
  FeedbackSpec feedback;
  OnNonfinite on_nonfinite = OnNonfinite::kError;
  // For gradients: true if a message is compressed only while its receiver is in the cool-down of
  // 1F1B (schedule.h), with every segment taken for a stage (Optimus-CC, arXiv 2301.09830).
  bool epilogue_only = false;
};

}  // namespace thinwire
