// Errors of codecs, in the words that every backend's kernels use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tensor/error.h"

namespace thinwire {

// The code of an error about what a codec refuses: malformed bytes, or arguments out of range.
constexpr absl::StatusCode kRefused = absl::StatusCode::kInvalidArgument;

// Return InvalidArgument if an encoder's payload memory has less than `want` bytes, or if a
// decoder's payload has not exactly `want` bytes.
Error CheckCapacity(const char* codec, size_t capacity, size_t want);
Error CheckPayloadBytes(const char* codec, size_t bytes, size_t want);

// Checks the pre-scale exponent of a short type (cpu/half.h). InvalidArgument unless least <=
// exponent <= most.
Error CheckPreScale(const char* codec, int exponent, int least, int most);

// Returns OutOfRange for a codec that cannot carry NaN or infinity; `element` is the first such.
Error NonFiniteElement(const char* codec, int64_t element, float value);

// Returns InvalidArgument unless two tensors that are compared have equally many elements.
Error CheckCompared(int64_t x_elements, int64_t y_elements);

}  // namespace thinwire
