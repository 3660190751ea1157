// Small codes two to a byte, so that the entropy coder takes half as many steps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// A code from here on is large: this stands for it in its pair, and it follows in a list.
constexpr uint8_t kLargeCode = 15;

constexpr size_t NumPairs(size_t codes) { return (codes + 1) / 2; }

// pairs[i] = codes[2 i] + 16 codes[2 i + 1] of NumPairs(n) pairs; there is no code behind the last
// one: 0. Writes the large codes to `large`, of n + 1 bytes, and returns how many they are.
size_t ToPairs(const uint8_t* codes, size_t n, uint8_t* pairs, uint8_t* large);

// The inverse, of n codes. Returns what is wrong with the large ones, or null.
const char* FromPairs(const uint8_t* pairs, size_t n, const uint8_t* large, size_t num_large,
                      uint8_t* codes);

}  // namespace thinwire
