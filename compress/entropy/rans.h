// Loops of the entropy coder (docs/compression.md, entropy): range asymmetric numeral systems
// (rANS; Duda, arXiv 1311.2540) with interleaved states (Giesen, arXiv 1402.3392), and a frequency
// table for each context of a byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thinwire {

constexpr int kSymbols = 256;
constexpr int kScaleBits = 12;  // the frequencies of a table add up to 2^12
constexpr uint32_t kScale = 1u << kScaleBits;
// Frequencies or counts of the 256 bytes.
using Frequencies = std::array<uint32_t, kSymbols>;

// Number of interleaved states. A string is coded in rows of kStates bytes, byte i by state i %
// kStates. The bytes of a row are coded at once, independently of each other.
constexpr size_t kStates = 32;
constexpr int kStatesLog2 = 5;
// Bounds of a state: between two bytes it is at least 2^15 and less than 2^31. Excess bits leave it
// in words of 16 bits.
constexpr int kWordBits = 16;
constexpr uint32_t kLeastState = 1u << 15;
constexpr size_t kWordBytes = 2, kStateBytes = 4, kStatesBytes = kStates * kStateBytes;

// Bytes that foretell how large a byte is: those of the same state in the given number of rows
// before. Bytes are zigzag codes here, so half of a byte, rounded up, is a magnitude.
struct Neighbours {
  static constexpr int kMost = 8;

  int count = 0;
  uint32_t rows[kMost] = {};  // distances in rows, at least 1; a repeated one counts twice
};
constexpr int kSums = 16;

// Computes the sums of the neighbours' magnitudes, capped at kSums - 1, for `num_rows` rows of
// `bytes` from `row` on. Before the first row there are no neighbours.
void SumsOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes, size_t row,
                      size_t num_rows, uint8_t* sums);

// String to code: its n bytes, the numbers of their tables (null: the first table), and the end of
// memory of at least RansBytes(n) for it.
struct RansSource {
  const uint8_t* bytes = nullptr;
  size_t n = 0;
  const uint8_t* contexts = nullptr;
  uint8_t* end = nullptr;
};
// Number of strings that are coded together. That is faster, because the processor need not wait
// for the bytes of any one.
constexpr size_t kRansTogether = 2;

// Codes `count` strings, each from its last byte to the first, so that the decoder goes forward.
// Sets begins[i] to where the states of string i begin; the words follow them up to the string's
// end.
void RansEncode(const RansSource* sources, size_t count, const Frequencies* tables, int num_tables,
                uint8_t** begins);
// Returns an upper bound of the coded bytes: a byte takes at most 12 bits, and each state one word
// more than the bytes are worth.
constexpr size_t RansBytes(size_t n) {
  return kStatesBytes + n / 2 * 3 + (kStates + 1) * kWordBytes;
}

// Tables and contexts by which a string is decoded.
struct RansModel {
  Neighbours neighbours;
  uint8_t context_of_sum[kSums] = {};  // below num_tables
  const Frequencies* tables = nullptr;
  int num_tables = 1;
};

// Coded string: its states and words, [from, end), at least kStatesBytes; and where its n bytes go.
struct RansPart {
  const uint8_t* from = nullptr;
  const uint8_t* end = nullptr;
  uint8_t* bytes = nullptr;
  size_t n = 0;
};

// Decodes `count` strings at once. Uses up all of each. Returns what is wrong with one, or null.
// With neighbours n is a multiple of kStates. Decoding several at once is faster, because the
// processor need not wait for the bytes of any one.
const char* RansDecode(const RansModel& model, const RansPart* parts, size_t count);

}  // namespace thinwire
