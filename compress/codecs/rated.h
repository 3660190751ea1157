// Codec ecsq with a rate: a message takes a given number of bits per element, whatever step that
// needs.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"

namespace thinwire {

// Returns the codec of `spec`, which has a rate. A message meets the rate within kRateTolerance, or
// comes as near as possible (step_search.h). The step is found by encoding the message itself, two
// or three times as a rule.
absl::StatusOr<std::unique_ptr<Codec>> NewRatedCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
