// Text form of codecs on a command line: "topk(ratio=0.1, scope=sample)", "fp16".
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compress/spec.h"

namespace thinwire {

// Parses what CodecSpec::ToString returns. Parameters that are left out get the values that they
// have in experiment files. InvalidArgument names what it met, and what is wanted.
absl::StatusOr<CodecSpec> ParseCodec(const std::string& text);

}  // namespace thinwire
