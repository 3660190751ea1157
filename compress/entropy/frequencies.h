// The entropy coder's tables: how often each byte is there, in 2^12ths. Their form in a frame is in
// docs/compression.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "compress/entropy/rans.h"
#include "tensor/error.h"

namespace thinwire {

constexpr size_t kMaxTableBytes = 2 * kSymbols;

Frequencies CountsOf(absl::Span<const uint8_t> bytes);

// What adds up to 2^12, is not 0 where the count is not, and is as the counts are, so that the
// fewest bits are lost. Of no counts at all: byte 0 alone.
Frequencies Scaled(const Frequencies& counts);

// Bits that as many bytes as `counts` says take with the table `scaled`.
double CodedBits(const Frequencies& counts, const Frequencies& scaled);

// How many bytes WriteTable writes.
size_t TableBytes(const Frequencies& scaled);
// Returns the end; kMaxTableBytes are enough.
uint8_t* WriteTable(const Frequencies& scaled, uint8_t* to);

// Takes the table off the front of `frame`. InvalidArgument unless it adds up.
Error ReadTable(absl::Span<const uint8_t>* frame, Frequencies* scaled);

}  // namespace thinwire
