// One traced step as a picture.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// An SVG of an aligned trace: a row for each stage, time to the right, what the executor did with
// its microbatch's number, below it encoding and decoding, and each message from its hand-over to
// its arrival. NotFound if the trace does not have the step.
absl::StatusOr<std::string> TimelineSvg(const RunTrace& trace, uint64_t step);

}  // namespace thinwire
