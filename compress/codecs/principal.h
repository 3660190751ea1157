// Rotation principal: a tensor in the principal axes of its channels, through the codec that it is
// a rotation of. Axes are those of a message before, which both ends have kept, or go with this
// one.
#pragma once

#include <memory>

#include "compress/codec.h"

namespace thinwire {

// `inner`: the codec of the same specification with Rotation::kNone.
std::unique_ptr<Codec> NewPrincipalCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                         CodecKernels* kernels);

}  // namespace thinwire
