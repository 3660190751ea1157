// What codecs refuse, in the words that every backend's kernels use.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/error.h"

namespace thinwire {

// InvalidArgument unless an encoder's payload memory, or a decoder's payload, is as long as wanted.
Error CheckCapacity(const char* codec, size_t capacity, size_t want);
Error CheckPayloadBytes(const char* codec, size_t bytes, size_t want);

// Of a short type's power of two (cpu/half.h). InvalidArgument unless least <= exponent <= most.
Error CheckPreScale(const char* codec, int exponent, int least, int most);

// The error of a codec that cannot carry NaN or infinity; `element` is the first such.
Error NonFiniteElement(const char* codec, int64_t element, float value);

// InvalidArgument unless two tensors that are compared have as many elements.
Error CheckCompared(int64_t x_elements, int64_t y_elements);

// fp8: of all codes without their signs the largest, where it is above what fp32 holds.
Error CheckLargestFp8(uint32_t largest, int exponent, uint32_t most);

// blockwise8: an absmax that is no finite number or has its sign bit set.
Error AbsmaxError(int64_t block, float absmax);

}  // namespace thinwire
