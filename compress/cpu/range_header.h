// Header of uniform's payloads: what they say besides codes, and which of it decoders refuse.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/range_line.h"
#include "compress/layout.h"
#include "compress/spec.h"
#include "tensor/error.h"

namespace thinwire {

// Returns the encoder's error for a range that overflows.
Error RangeOverflow(const MinMax& m);

// Returns the range of one scope. Requires that CheckRanges accepted the header.
DecodeLine ReadRange(const CodecSpec& spec, const uint8_t* header, int64_t scope);

// Returns InvalidArgument unless fixed_point's exponent is possible. The header may be of any
// `range`.
Error CheckExponent(const CodecSpec& spec, const uint8_t* header);
// Returns InvalidArgument unless everything that the header can decode to is finite.
Error CheckRanges(const CodecSpec& spec, const Scopes& scopes, const uint8_t* header);

// Returns InvalidArgument if bits behind the last of `total` codes are set in the payload's last
// byte.
Error CheckLastByte(uint8_t last_byte, const CodecSpec& spec, int64_t total);

// For fixed_point: say whether the payload is that of a constant tensor; read the constant
// (InvalidArgument unless it is finite); write it.
bool IsConstant(const CodecSpec& spec, const Scopes& scopes, const uint8_t* payload, size_t bytes);
Error ReadConstant(const uint8_t* payload, float* value);
void WriteConstant(float value, uint8_t* payload);

}  // namespace thinwire
