// Positions from Rice-coded gaps (docs/compression.md), eight at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Longest remainder, in bits, of which a sum of eight fits in a byte.
constexpr uint32_t kMostRiceBitsAtOnce = 5;

// Turns numbers of flags into positions (their low 32 bits), in place, for entries first, ...,
// first + n - 1. Their remainders have `rice_bits` <= kMostRiceBitsAtOnce bits, a byte each at
// `remainders`, which has memory for n rounded up to 8. `sum` is the sum of all earlier remainders;
// returns it with these added.
uint32_t PositionsOfFlags(uint32_t* flags, const uint8_t* remainders, size_t n, uint32_t rice_bits,
                          uint32_t first, uint32_t sum);

}  // namespace thinwire
