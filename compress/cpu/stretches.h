// A string as stretches side by side, which can be coded at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/cpu/rans.h"

namespace thinwire {

// A stretch is a kStates-th of a string of n bytes, and as many bytes are in this many rows.
constexpr size_t NumRows(size_t n) { return (n + kStates - 1) / kStates; }

// rows[j kStates + s] = bytes[s NumRows(n) + j]; 0 behind the last byte. `rows` has memory for all
// of its NumRows(n) rows.
void ToRows(const uint8_t* bytes, size_t n, uint8_t* rows);

// The inverse.
void FromRows(const uint8_t* rows, size_t n, uint8_t* bytes);

}  // namespace thinwire
