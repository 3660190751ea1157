// The ranges of uniform's scopes: measured, written before the codes, read back. The encoder
// quantises against what it reads back, which is what the decoder will see.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/quantize.h"
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

// The range of one scope. Requires CheckRanges.
DecodeLine ReadRange(const CodecSpec& spec, const uint8_t* header, int64_t scope);
// InvalidArgument unless everything the header can decode to is finite.
Error CheckRanges(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header);

// How values of a range are mapped to the grid.
EncodeLine EncodeLineOf(const DecodeLine& range, int32_t divisor);

}  // namespace thinwire
