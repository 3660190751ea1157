// A codec's specification as it travels in a frame, and back.
#pragma once

#include "absl/status/statusor.h"
#include "compress/spec.h"
#include "proto/boundary.pb.h"

namespace thinwire {

// Only the parameters that have a say in the codec are set (compress/spec_parameters.h). The
// numbers of CodecParameters' enums are those of compress/spec.h.
CodecParameters ToParameters(const CodecSpec& spec);

// InvalidArgument names the field whose number means nothing here, or that is set and has no say in
// the codec. Whether the parameters make sense together is for CheckSpec, and whether they are the
// expected ones for the receiver.
absl::StatusOr<CodecSpec> FromParameters(const CodecParameters& parameters);

}  // namespace thinwire
