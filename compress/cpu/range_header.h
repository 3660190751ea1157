// What a payload of uniform says besides its codes, and what it must not say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/range_line.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// The encoder's refusal of a range that overflows.
Error RangeOverflow(const MinMax& m);

// The range of one scope. Requires CheckRanges.
DecodeLine ReadRange(const CodecSpec& spec, const uint8_t* header, int64_t scope);

// InvalidArgument unless fixed_point's exponent is possible; of a header of any `range`.
Error CheckExponent(const CodecSpec& spec, const uint8_t* header);
// InvalidArgument unless everything the header can decode to is finite.
Error CheckRanges(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header);

// InvalidArgument if bits are set behind the last of `total` codes, in the payload's last byte.
Error CheckLastByte(uint8_t last_byte, const CodecSpec& spec, int64_t total);
// InvalidArgument if the largest code met has no value.
Error CheckLargestCode(uint32_t largest, uint32_t max_code);

// fixed_point: whether the payload is that of a constant tensor, and the constant: InvalidArgument
// unless it is finite.
bool IsConstant(const CodecSpec& spec, const Scopes& scopes, const uint8_t* payload, size_t bytes);
Error ReadConstant(const uint8_t* payload, float* value);
void WriteConstant(float value, uint8_t* payload);

}  // namespace thinwire
