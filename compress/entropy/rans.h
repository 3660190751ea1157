// The loops of the entropy coder (docs/compression.md, entropy): range asymmetric numeral systems
// (Duda, arXiv 1311.2540) whose states take turns (Giesen, arXiv 1402.3392), with a table of
// frequencies for each context of a byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace thinwire {

constexpr int kSymbols = 256;
constexpr int kScaleBits = 12;  // the frequencies of a table add up to 2^12
constexpr uint32_t kScale = 1u << kScaleBits;
// Of each byte.
using Frequencies = std::array<uint32_t, kSymbols>;

// A string is coded in rows of kStates bytes, byte i by state i % kStates: the bytes of a row are
// coded at once and do not know each other.
constexpr size_t kStates = 32;
constexpr int kStatesLog2 = 5;
// Between two bytes a state is at least 2^15 and less than 2^31; what does not fit leaves it in
// words of 16 bits.
constexpr int kWordBits = 16;
constexpr uint32_t kLeastState = 1u << 15;
constexpr size_t kWordBytes = 2, kStateBytes = 4, kStatesBytes = kStates * kStateBytes;

// The bytes that foretell how large one is: those of the same state so many rows before. Bytes are
// zigzag codes here: half of one, rounded up, is its magnitude.
struct Neighbours {
  static constexpr int kMost = 8;

  int count = 0;
  uint32_t rows[kMost] = {};  // at least 1; one that is there twice counts twice
};
constexpr int kSums = 16;

// The sums of the neighbours' magnitudes, none before the first row, and at most kSums - 1, of
// `num_rows` rows of `bytes` from `row` on.
void SumsOfNeighbours(const Neighbours& neighbours, const uint8_t* bytes, size_t row,
                      size_t num_rows, uint8_t* sums);

// Codes `n` bytes from the last to the first, so that the decoder goes forward: byte i with
// tables[contexts[i]], or with the only table where `contexts` is null. `end` is that of memory of
// at least RansBytes(n); returns where the states, and behind them the words, begin.
uint8_t* RansEncode(const uint8_t* bytes, size_t n, const uint8_t* contexts,
                    const Frequencies* tables, int num_tables, uint8_t* end);
// A byte takes 12 bits at most, and each state one word more than they are worth.
constexpr size_t RansBytes(size_t n) {
  return kStatesBytes + n / 2 * 3 + (kStates + 1) * kWordBytes;
}

// By which a string is decoded.
struct RansModel {
  Neighbours neighbours;
  uint8_t context_of_sum[kSums] = {};  // below num_tables
  const Frequencies* tables = nullptr;
  int num_tables = 1;
};

// A string that was coded: its states and words, [from, end), of at least kStatesBytes, and where
// its n bytes go.
struct RansPart {
  const uint8_t* from = nullptr;
  const uint8_t* end = nullptr;
  uint8_t* bytes = nullptr;
  size_t n = 0;
};

// The inverse, of `count` strings at once. Uses up all of each, and returns what is wrong with one,
// or null. With neighbours n is a multiple of kStates. Several are decoded faster than one after
// the other: the processor need not wait for the bytes of any.
const char* RansDecode(const RansModel& model, const RansPart* parts, size_t count);

}  // namespace thinwire
