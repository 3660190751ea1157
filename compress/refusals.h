// Errors of codecs, in the words that every backend's kernels use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tensor/error.h"

namespace thinwire {

// The code of an error about malformed bytes.
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

// For fp8: returns InvalidArgument if the largest of all codes, without signs, is above `most`, the
// largest that fp32 can hold under this exponent.
Error CheckLargestFp8(uint32_t largest, int exponent, uint32_t most);

// For blockwise8: returns the error for an absmax that is not finite or has its sign bit set.
Error AbsmaxError(int64_t block, float absmax);

// For ecsq: return the error for a step that is neither zero nor a normal number, and for a code
// that would fit a byte but was sent as an escape.
Error StepError(int64_t scope, float step);
Error EscapeError(int64_t element, int32_t code);

}  // namespace thinwire
