// Parts of a string, which the encoder codes several at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/rans.h"

namespace thinwire {

// String to be coded in parts of whole rows, of which the last may be incomplete (RowLayout says
// which), and the tables for it.
struct StringInParts {
  absl::Span<const uint8_t> bytes;
  const uint8_t* contexts = nullptr;  // the number of each byte's table; null with one table
  const Frequencies* tables = nullptr;
  int num_tables = 1;
  size_t num_parts = 1;
};

// Returns an upper bound of the bytes of all coded parts.
constexpr size_t PartsBytes(size_t num_bytes, size_t num_parts) {
  return RansBytes(num_bytes) + num_parts * RansBytes(0);
}

// Codes the parts and writes them to `to`, one behind the other. Writes the length of each as a u32
// to `lengths`, unless that is null. Returns the end of the last part.
uint8_t* WriteParts(const StringInParts& string, uint8_t* lengths, uint8_t* to);

}  // namespace thinwire
