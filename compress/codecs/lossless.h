// Lossless stage behind any codec: the codec's payload as a frame of zstd or of the entropy coder,
// or stored as it is if a frame would not be shorter.
//
// A message costs at most one byte more than without the stage. Each thread keeps the coders'
// memory and that of one payload, so that a message allocates nothing after the largest one.
#pragma once

#include <memory>

#include "compress/codec.h"
#include "compress/entropy/kernels.h"

namespace thinwire {

// Returns the codec that adds the lossless stage to `inner`, which is the codec of the same
// specification with Lossless::kNone. For ecsq with rounding rate_distortion, `inner` has rounding
// dead_zone, and the codes are chosen anew here, for tensors in host memory only. `kernels` are of
// the device of the tensors, and `inner` is then a NewKernelCodec; null if the host makes and reads
// frames.
std::unique_ptr<Codec> NewLosslessCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                        EntropyKernels* kernels);

}  // namespace thinwire
