// The error of a codec that cannot carry NaN or infinity.
#pragma once

#include "tensor/error.h"
#include "tensor/tensor.h"

namespace thinwire {

// Requires that x holds at least one such value; the message names the first.
Error NonFiniteError(const char* codec, const TensorView& x);

}  // namespace thinwire
