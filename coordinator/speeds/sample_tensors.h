// Tensors to measure codecs on: from safetensors files, or of a short run made for it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/codecs/measure.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Every F32 and BF16 tensor of the files. Its group is "activation" or "gradient" if that is a part
// of its name, as in captures ("layer1/gradient/step1"), and "tensor" otherwise. Errors name file
// and tensor.
absl::StatusOr<std::vector<SampleTensor>> ReadSampleTensors(const std::vector<std::string>& paths);

// An activation and a gradient of a residual network on the embedded digits, after some steps:
// trains it for that, which takes seconds.
absl::StatusOr<std::vector<SampleTensor>> CaptureSampleTensors(const SessionOptions& options,
                                                               Interruption* interruption);

}  // namespace thinwire
