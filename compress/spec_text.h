// Codecs as people write them on a command line: "topk(ratio=0.1, scope=sample)", "fp16".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compress/spec.h"

namespace thinwire {

// The inverse of CodecSpec::ToString. Parameters that are left out have the values that they have
// in experiment files. InvalidArgument names what it met, and what is wanted.
absl::StatusOr<CodecSpec> ParseCodec(const std::string& text);

}  // namespace thinwire
