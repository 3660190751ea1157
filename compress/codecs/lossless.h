// The lossless stage behind any codec: its payload as a frame of zstd or of the entropy coder, or
// stored where that does not pay.
//
// A message costs one byte more than before at worst. Each thread keeps their memory and one
// payload's, so that a message allocates nothing after the largest one.
#pragma once

#include <memory>

#include "compress/codec.h"
#include "compress/entropy/kernels.h"

namespace thinwire {

// `inner`: the codec of the same specification with Lossless::kNone; of ecsq with rounding
// rate_distortion that of dead_zone, whose codes are chosen anew here, of tensors in host memory
// only. `kernels`: of the device of the tensors, for which `inner` is NewKernelCodec; null: the
// host makes and reads frames.
std::unique_ptr<Codec> NewLosslessCodec(const CodecSpec& spec, std::unique_ptr<Codec> inner,
                                        EntropyKernels* kernels);

}  // namespace thinwire
