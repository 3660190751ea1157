// Frequency tables of the entropy coder: probabilities of the 256 bytes in units of 2^-12. Their
// format in a frame is in docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/rans.h"
#include "tensor/error.h"

namespace thinwire {

// Upper bound of a written table's bytes.
constexpr size_t kMaxTableBytes = 2 * kSymbols;

// Returns how often each byte occurs.
Frequencies CountsOf(absl::Span<const uint8_t> bytes);
// Adds `more` to the counts.
void AddCounts(const Frequencies& more, Frequencies* counts);

// Returns frequencies that add up to 2^12, are not 0 where the count is not 0, and follow the
// counts so that the fewest bits are lost. If all counts are 0, byte 0 gets all of it.
Frequencies Scaled(const Frequencies& counts);

// Returns the bits that bytes with these counts take when coded with the table `scaled`.
double CodedBits(const Frequencies& counts, const Frequencies& scaled);

// Returns the number of bytes that WriteTable writes.
size_t TableBytes(const Frequencies& scaled);
// Writes the table to `to`, which has room for kMaxTableBytes bytes. Returns the end of what it
// wrote.
uint8_t* WriteTable(const Frequencies& scaled, uint8_t* to);

// Reads a table and removes it from the front of `frame`. InvalidArgument unless it adds up to
// 2^12.
Error ReadTable(absl::Span<const uint8_t>* frame, Frequencies* scaled);

}  // namespace thinwire
