// Arrangement of a string in rows of codes. The codes of a row can be coded at once, and each has
// the codes that are likely to resemble it in the same place of earlier rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/entropy/rans.h"

namespace thinwire {

constexpr size_t NumRows(size_t n) { return (n + kStates - 1) / kStates; }

// Layout of a string in rows. The string is divided into parts of whole rows, and each part is
// coded by itself. A part consists of kStates / width stretches; a row has the next `width` bytes
// of each.
struct RowLayout {
  size_t num_parts = 1;  // at most the number of rows, or 1
  size_t width = 1;      // a power of two, at most kStates

  // Returns the first row of a part of a string of `num_rows` rows.
  size_t PartBegin(size_t num_rows, size_t part) const { return part * num_rows / num_parts; }
};

// Sets rows[j kStates + t width + i] = bytes[(t NumRows(n) + j) width + i] for a part of n bytes; 0
// behind the last byte. `rows` has memory for all of its NumRows(n) rows.
void ToRows(const uint8_t* bytes, size_t n, size_t width, uint8_t* rows);

// Inverts ToRows.
void FromRows(const uint8_t* rows, size_t n, size_t width, uint8_t* bytes);

// Do the same for all parts of a string.
void ToRows(const uint8_t* bytes, size_t n, const RowLayout& layout, uint8_t* rows);
void FromRows(const uint8_t* rows, size_t n, const RowLayout& layout, uint8_t* bytes);

// Computes SumsOfNeighbours (rans.h) for all rows of a string; neighbours are of the same part.
void SumsOfNeighbours(const Neighbours& neighbours, const RowLayout& layout, const uint8_t* rows,
                      size_t num_rows, uint8_t* sums);

}  // namespace thinwire
