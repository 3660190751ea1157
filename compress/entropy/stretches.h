// A string as rows of codes that can be coded at once, each of which has those that are likely to
// be like it in the same place of earlier rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/entropy/rans.h"

namespace thinwire {

constexpr size_t NumRows(size_t n) { return (n + kStates - 1) / kStates; }

// How a string is dealt to rows. It is in parts, of whole rows, each of which is coded by itself. A
// part is in kStates / width stretches, and a row has the next `width` bytes of each.
struct RowLayout {
  size_t num_parts = 1;  // at most the number of rows, or 1
  size_t width = 1;      // a power of two, at most kStates

  // The first row of a part of a string of so many rows.
  size_t PartBegin(size_t num_rows, size_t part) const { return part * num_rows / num_parts; }
};

// rows[j kStates + t width + i] = bytes[(t NumRows(n) + j) width + i] of a part of n bytes; 0
// behind the last byte. `rows` has memory for all of its NumRows(n) rows.
void ToRows(const uint8_t* bytes, size_t n, size_t width, uint8_t* rows);

// The inverse.
void FromRows(const uint8_t* rows, size_t n, size_t width, uint8_t* bytes);

// The same of all parts of a string.
void ToRows(const uint8_t* bytes, size_t n, const RowLayout& layout, uint8_t* rows);
void FromRows(const uint8_t* rows, size_t n, const RowLayout& layout, uint8_t* bytes);

// SumsOfNeighbours (rans.h) of all rows of a string, each of its part's.
void SumsOfNeighbours(const Neighbours& neighbours, const RowLayout& layout, const uint8_t* rows,
                      size_t num_rows, uint8_t* sums);

}  // namespace thinwire
