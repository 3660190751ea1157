// CRC-32C (Castagnoli, RFC 3720): what every frame's header and payload carry. Runs on the
// crc32 instruction of x86-64-v2.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// The CRC of the bytes so far, whose CRC is `crc` (0 at the start), and these. Any alignment.
uint32_t ExtendCrc32c(uint32_t crc, const void* bytes, size_t size);

inline uint32_t Crc32c(const void* bytes, size_t size) { return ExtendCrc32c(0, bytes, size); }

// ExtendCrc32c and memcpy in one pass over the memory. The two ranges must not overlap.
uint32_t ExtendCrc32cAndCopy(uint32_t crc, void* to, const void* from, size_t size);

}  // namespace thinwire
