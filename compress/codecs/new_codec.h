// Makes a codec from its specification.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "compress/codec.h"
#include "compress/kernels.h"
#include "compress/spec.h"

namespace thinwire {

// Returns the codec of a specification. `kernels` belong to the device of the tensors and outlive
// the codec; nullptr if only the codec's bounds will be asked for. InvalidArgument if the
// specification is out of range (see CheckSpec).
absl::StatusOr<std::unique_ptr<Codec>> NewCodec(const CodecSpec& spec, CodecKernels* kernels);

// Returns whether the codec of a valid specification takes payloads in memory of the tensors'
// device (MessageContext::payload_is_on_device).
bool CodesOnDevice(const CodecSpec& spec, const CodecKernels& kernels);

}  // namespace thinwire
