// Ranges of uniform's scopes as they travel: written from extremes, and checked. Functions only
// launch kernels.
#pragma once

#include <cstdint>

#include "compress/cuda/extremes.h"
#include "compress/cuda/uniform.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/cuda/device.h"

namespace thinwire {

// Writes UniformHeaderBytes bytes at an even address (a multiple of 4 except under fixed_point).
// *found is all zero before.
Error SubmitRanges(CudaDevice* device, const Extremes* extremes, const CodecSpec& spec,
                   const Scopes& scopes, uint8_t* header, UniformEncoded* found);

// Sets found->bad_ranges, which is zero before. Requires CheckExponent.
Error SubmitCheckRanges(CudaDevice* device, const uint8_t* header, const CodecSpec& spec,
                        const Scopes& scopes, UniformDecoded* found);

}  // namespace thinwire
