// ecsq with a rate: so many bits for each element of the tensor, whatever step that takes.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"

namespace thinwire {

// `spec` has a rate. A message takes it within kRateTolerance, or comes nearest (step_search.h).
// The step is chosen by encoding the message itself, two or three times as a rule.
absl::StatusOr<std::unique_ptr<Codec>> NewRatedCodec(const CodecSpec& spec, CodecKernels* kernels);

}  // namespace thinwire
