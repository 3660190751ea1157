// Rotation principal: codes a tensor in the principal axes of its channels. The axes are those of
// an earlier message, which both ends have kept, or travel with this message.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// Returns the codec that rotates tensors and passes them to `inner`, the codec of the same
// specification with Rotation::kNone.
std::unique_ptr<Codec> NewPrincipalCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels);

}  // namespace thinwire
