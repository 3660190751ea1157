// Checks of each codec's parameters: CheckSpec of its kind.
#pragma once

#include "absl/status/status.h"
#include "compress/spec.h"

namespace thinwire {

// InvalidArgument naming codec, parameter, the value met and the values wanted.

// Checks what every codec with one range per scope has.
absl::Status CheckScope(const CodecSpec& spec);

absl::Status CheckUniform(const CodecSpec& spec);
absl::Status CheckTopK(const CodecSpec& spec);
absl::Status CheckRandomK(const CodecSpec& spec);
absl::Status CheckThreshold(const CodecSpec& spec);
absl::Status CheckBlockwise8(const CodecSpec& spec);
absl::Status CheckLowRank(const CodecSpec& spec);
absl::Status CheckPlugin(const CodecSpec& spec);
absl::Status CheckEcsq(const CodecSpec& spec);

}  // namespace thinwire
