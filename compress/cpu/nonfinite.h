// Errors of codecs that cannot carry NaN or infinity.
#pragma once

#include <cstdint>

#include "compress/kernels.h"
#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Returns the first element that is NaN or infinite, among those with support (all if `support` is
// null); x.elements() if there is none.
int64_t FirstNonFinite(const TensorView& x, const SupportView* support);

// Returns the error that names that element. Requires that there is one.
Error NonFiniteError(const char* codec, const TensorView& x, const SupportView* support = nullptr);

}  // namespace thinwire
