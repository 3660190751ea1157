// Packing of codes of 1 to 8 bits without gaps: code i takes bits [i b, (i + 1) b) of the bytes,
// the lowest bit of a byte first.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Packs codes[0, n), all below 2^bits, into ceil(n bits / 8) bytes; unused bits are zero. `codes`
// has memory for n rounded up to 64 and is overwritten.
void PackCodes(uint8_t* codes, size_t n, uint32_t bits, uint8_t* bytes);

// Unpacks n codes from ceil(n bits / 8) bytes. `codes` has memory for n rounded up to 64.
void UnpackCodes(const uint8_t* bytes, size_t n, uint32_t bits, uint8_t* codes);

}  // namespace thinwire
