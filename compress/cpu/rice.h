// Positions from Rice-coded gaps (docs/compression.md), eight at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Eight remainders of so many bits sum up to a byte.
constexpr uint32_t kMostRiceBitsAtOnce = 5;

// Positions of entries first, ..., first + n - 1 from the numbers of their flags, in place; low 32
// bits. Their remainders have `rice_bits` <= kMostRiceBitsAtOnce bits each, a byte for one at
// `remainders`, where n is rounded up to 8. `sum` is that of the remainders before; returns it with
// these added.
uint32_t PositionsOfFlags(uint32_t* flags, const uint8_t* remainders, size_t n, uint32_t rice_bits,
                          uint32_t first, uint32_t sum);

}  // namespace thinwire
