// Converts a codec's specification to its form in a frame, and back.
#pragma once

#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// Sets only the parameters that matter to the codec (compress/spec_parameters.h). The numbers of
// CodecParameters' enums are those of compress/spec.h.
CodecParameters ToParameters(const CodecSpec& spec);

// Returns the specification. InvalidArgument names a field whose number is unknown, or that is set
// but does not matter to the codec. CheckSpec decides whether the parameters fit together, and the
// receiver whether they are the expected ones.
absl::StatusOr<CodecSpec> FromParameters(const CodecParameters& parameters);

}  // namespace thinwire
