// `thinwire codecs --conformance`: the promises of a codec, one process per check.
#pragma once

#include "absl/status/statusor.h"
#include "compress/spec.h"

namespace thinwire {

// Prints PASS or FAIL for each check; true if all passed. A check that crashes, or takes longer
// than two minutes, fails. Cancelled once `interrupt_fd` is readable: the check under way is gone
// then.
absl::StatusOr<bool> PrintConformance(const CodecSpec& spec, int interrupt_fd);

}  // namespace thinwire
