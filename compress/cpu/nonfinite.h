// The error of a codec that cannot carry NaN or infinity.
#pragma once

#include <cstdint>

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// The first element that is NaN or infinite, of those with support (null: of all); x.elements() if
// there is none.
int64_t FirstNonFinite(const TensorView& x, const SupportView* support);

// Requires that there is one; the message names it.
Error NonFiniteError(const char* codec, const TensorView& x, const SupportView* support = nullptr);

}  // namespace thinwire
