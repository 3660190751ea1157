// The ranges of uniform's scopes: measured, and written before the codes. The encoder quantises
// against what it reads back (range_header.h), which is what the decoder will see.
#pragma once

#include <cstdint>

#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Writes UniformHeaderBytes bytes; or, for a constant tensor under fixed_point,
// kConstantTensorBytes and true to *constant. InvalidArgument if x holds NaN or infinity or a range
// overflows fp32.
Error WriteRanges(const TensorView& x, const CodecSpec& spec, const Scopes& scopes, uint8_t* header,
                  bool* constant, int threads);

}  // namespace thinwire
