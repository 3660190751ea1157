// Pairing of small codes, two to a byte, which halves the steps of the entropy coder.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Least large code. In its pair this value stands for any large code; the code itself follows in a
// list.
constexpr uint8_t kLargeCode = 15;

constexpr size_t NumPairs(size_t codes) { return (codes + 1) / 2; }

// Sets pairs[i] = codes[2 i] + 16 codes[2 i + 1] for NumPairs(n) pairs; behind the last code counts
// a 0. Writes the large codes to `large`, of n + 1 bytes, and returns their number.
size_t ToPairs(const uint8_t* codes, size_t n, uint8_t* pairs, uint8_t* large);

// Inverts ToPairs for n codes. Returns what is wrong with the large codes, or null.
const char* FromPairs(const uint8_t* pairs, size_t n, const uint8_t* large, size_t num_large,
                      uint8_t* codes);

}  // namespace thinwire
