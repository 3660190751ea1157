// CRC-32C (Castagnoli, RFC 3720), which every frame's header and payload carry. Uses the crc32
// instruction of x86-64-v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Returns the CRC of earlier bytes, whose CRC is `crc` (0 at the start), followed by these. Any
// alignment.
uint32_t ExtendCrc32c(uint32_t crc, const void* bytes, size_t size);

inline uint32_t Crc32c(const void* bytes, size_t size) { return ExtendCrc32c(0, bytes, size); }

// Does ExtendCrc32c and memcpy in one pass over the memory. The two ranges must not overlap.
uint32_t ExtendCrc32cAndCopy(uint32_t crc, void* to, const void* from, size_t size);

}  // namespace thinwire
