// What codecs refuse, in the words that every backend's kernels use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "tensor/error.h"

namespace thinwire {

// The code of an error about malformed bytes.
constexpr absl::StatusCode kRefused = absl::StatusCode::kInvalidArgument;

// InvalidArgument unless an encoder's payload memory, or a decoder's payload, is as long as wanted.
Error CheckCapacity(const char* codec, size_t capacity, size_t want);
Error CheckPayloadBytes(const char* codec, size_t bytes, size_t want);

// The exponent of a short type's power of two (cpu/half.h). InvalidArgument unless least <=
// exponent <= most.
Error CheckPreScale(const char* codec, int exponent, int least, int most);

// OutOfRange of a codec that cannot carry NaN or infinity; `element` is the first such.
Error NonFiniteElement(const char* codec, int64_t element, float value);

// InvalidArgument unless two tensors that are compared have as many elements.
Error CheckCompared(int64_t x_elements, int64_t y_elements);

// fp8: InvalidArgument if the largest of all codes, signs left out, is above `most`, the largest
// that fp32 holds under this exponent.
Error CheckLargestFp8(uint32_t largest, int exponent, uint32_t most);

// blockwise8: the error of an absmax that is no finite number or has its sign bit set.
Error AbsmaxError(int64_t block, float absmax);

// ecsq: the errors of a step that is neither zero nor a normal number, and of a code that has a
// byte but came behind the bytes.
Error StepError(int64_t scope, float step);
Error EscapeError(int64_t element, int32_t code);

}  // namespace thinwire
