// Picture of one traced step.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/trace/trace.h"

namespace thinwire {

// Returns an SVG of an aligned trace, with time to the right and a row for each stage. A row shows
// the executor's work with its microbatch's number, and below it encoding and decoding. Lines show
// each message from the hand-over to the transport to its arrival. NotFound if the trace lacks the
// step.
absl::StatusOr<std::string> TimelineSvg(const RunTrace& trace, uint64_t step);

}  // namespace thinwire
