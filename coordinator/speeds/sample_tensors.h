// Tensors to measure codecs on, from safetensors files or from a short run.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/codecs/measure.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Reads every F32 and BF16 tensor of the files. The group is "activation" or "gradient" if the name
// contains that part, as in captures ("layer1/gradient/step1"), and "tensor" otherwise. Errors name
// file and tensor.
absl::StatusOr<std::vector<SampleTensor>> ReadSampleTensors(const std::vector<std::string>& paths);

// Returns an activation and a gradient of a residual network on the embedded digits. It trains the
// network for some steps, which takes seconds.
absl::StatusOr<std::vector<SampleTensor>> CaptureSampleTensors(const SessionOptions& options,
                                                               Interruption* interruption);

}  // namespace thinwire
