#include "compress/entropy_frame.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/scratch.h"

namespace thinwire {
namespace {

constexpr int kSymbols = 256;
constexpr int kScaleBits = 12;  // frequencies of a table add up to 2^12
constexpr uint32_t kScale = 1u << kScaleBits;
constexpr size_t kLanes = 8;  // byte i belongs to state i % 8
// Between two bytes a state is at least 2^16; what does not fit leaves it in words of 16 bits.
constexpr int kWordBits = 16;
constexpr uint32_t kLeastState = 1u << kWordBits;
constexpr size_t kWordBytes = 2, kStateBytes = 4, kCountBytes = 4;
// In a table: a byte under this is a frequency, one with it set the upper seven bits of one.
constexpr uint8_t kTwoBytes = 0x80;
constexpr size_t kMaxTableBytes = 2 * kSymbols;

using Frequencies = std::array<uint32_t, kSymbols>;

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("entropy: ", why));
}

// Four counters take turns: a run of equal bytes does not wait for itself.
Frequencies CountsOf(absl::Span<const uint8_t> bytes) {
  std::array<Frequencies, 4> parts = {};
  const size_t whole = bytes.size() / 4 * 4;
  for (size_t i = 0; i < whole; i += 4) {
    for (size_t part = 0; part < 4; ++part) ++parts[part][bytes[i + part]];
  }
  for (size_t i = whole; i < bytes.size(); ++i) ++parts[0][bytes[i]];
  for (int s = 0; s < kSymbols; ++s) parts[0][s] += parts[1][s] + parts[2][s] + parts[3][s];
  return parts[0];
}

// What adds up to 2^12, is not 0 where the count is not, and is as the counts are: rounded to the
// nearest, then one by one where it costs the fewest bits.
Frequencies Scaled(const Frequencies& counts, uint64_t total) {
  Frequencies scaled = {};
  uint32_t sum = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (counts[s] == 0) continue;
    const uint64_t nearest = (2 * uint64_t{counts[s]} * kScale + total) / (2 * total);
    scaled[s] = static_cast<uint32_t>(std::max<uint64_t>(1, nearest));
    sum += scaled[s];
  }
  // A step from f to f + 1 saves count / (f + 1/2) bits over ln 2, nearly.
  const auto value = [&](int s, uint32_t odd) { return (uint64_t{counts[s]} << 16) / odd; };
  for (; sum < kScale; ++sum) {
    int best = 0;
    for (int s = 1; s < kSymbols; ++s) {
      if (value(s, 2 * scaled[s] + 1) > value(best, 2 * scaled[best] + 1)) best = s;
    }
    ++scaled[best];
  }
  for (; sum > kScale; --sum) {
    int best = -1;
    for (int s = 0; s < kSymbols; ++s) {
      if (scaled[s] < 2) continue;
      if (best < 0 || value(s, 2 * scaled[s] - 1) < value(best, 2 * scaled[best] - 1)) best = s;
    }
    --scaled[best];
  }
  return scaled;
}

// Bytes that the states and their words take, within a few.
double CodedBytes(const Frequencies& counts, const Frequencies& scaled) {
  double bits = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (counts[s] > 0) bits += counts[s] * (kScaleBits - std::log2(scaled[s]));
  }
  return bits / 8 + kLanes * kStateBytes;
}

// Returns the end.
uint8_t* WriteTable(const Frequencies& scaled, uint8_t* to) {
  for (int s = 0; s < kSymbols; ++s) {
    if (scaled[s] == 0) {
      int more = 0;
      while (s + 1 < kSymbols && scaled[s + 1] == 0) ++s, ++more;
      *to++ = 0;
      *to++ = static_cast<uint8_t>(more);
    } else if (scaled[s] < kTwoBytes) {
      *to++ = static_cast<uint8_t>(scaled[s]);
    } else {
      *to++ = static_cast<uint8_t>(kTwoBytes | scaled[s] >> 8);
      *to++ = static_cast<uint8_t>(scaled[s]);
    }
  }
  return to;
}

// Takes the table off the front of `frame`.
absl::StatusOr<Frequencies> ReadTable(absl::Span<const uint8_t>* frame) {
  Frequencies scaled = {};
  uint32_t sum = 0;
  size_t at = 0;
  for (int s = 0; s < kSymbols;) {
    const uint8_t first = at < frame->size() ? (*frame)[at] : 0;
    const bool is_single = first != 0 && first < kTwoBytes;
    if (at + (is_single ? 1 : 2) > frame->size()) return Refuse("a table that is cut short");
    const uint8_t second = is_single ? 0 : (*frame)[at + 1];
    at += is_single ? 1 : 2;
    if (first == 0) {
      s += 1 + second;
      if (s > kSymbols) return Refuse(absl::StrCat("a table of ", s, " bytes, want 256"));
      continue;
    }
    scaled[s] = is_single ? first : (first - kTwoBytes) * 256u + second;
    if (!is_single && scaled[s] < kTwoBytes) return Refuse("a small frequency in two bytes");
    sum += scaled[s++];
  }
  if (sum != kScale) {
    return Refuse(absl::StrCat("frequencies that add up to ", sum, ", want ", kScale));
  }
  frame->remove_prefix(at);
  return scaled;
}

// How a byte enters a state: x becomes x / f * 2^12 + x % f + start.
struct EncoderSymbol {
  uint64_t reciprocal;  // 2^44 / f, rounded up
  uint32_t frequency;   // f
  uint32_t start;       // the sum of the frequencies before it
};

std::array<EncoderSymbol, kSymbols> EncoderTable(const Frequencies& scaled) {
  std::array<EncoderSymbol, kSymbols> table = {};
  uint32_t start = 0;
  for (int s = 0; s < kSymbols; ++s) {
    if (scaled[s] == 0) continue;
    const uint64_t f = scaled[s];
    table[s] = {((uint64_t{1} << 44) + f - 1) / f, scaled[s], start};
    start += scaled[s];
  }
  return table;
}

// From the last byte to the first, so that the decoder goes forward. `end` is that of the memory;
// returns where the states, and behind them the words, begin.
uint8_t* EncodeBackward(absl::Span<const uint8_t> bytes, const Frequencies& scaled, uint8_t* end) {
  const std::array<EncoderSymbol, kSymbols> table = EncoderTable(scaled);
  std::array<uint32_t, kLanes> states;
  states.fill(kLeastState);
  uint8_t* to = end;
  const auto encode = [&](size_t i) {
    const EncoderSymbol& symbol = table[bytes[i]];
    uint32_t x = states[i % kLanes];
    // A state of f 2^20 or more would leave 32 bits: its lower word goes first. It is written in
    // any case and counts in this one, as a branch could not be foreseen.
    const uint32_t is_full = x >> (32 - kScaleBits) >= symbol.frequency ? 1 : 0;
    StoreAs(static_cast<uint16_t>(x), to - kWordBytes);
    to -= is_full * kWordBytes;
    x >>= is_full * kWordBits;
    // x < f 2^20 and the reciprocal is less than 1 too large, so that the quotient is exact and the
    // product stays below 2^64.
    const auto quotient = static_cast<uint32_t>(x * symbol.reciprocal >> 44);
    states[i % kLanes] = x + symbol.start + quotient * (kScale - symbol.frequency);
  };
  size_t i = bytes.size();
  while (i % kLanes != 0) encode(--i);
  for (; i > 0; i -= kLanes) {
    for (size_t lane = kLanes; lane > 0; --lane) encode(i - kLanes + lane - 1);
  }
  to -= kLanes * kStateBytes;
  for (size_t lane = 0; lane < kLanes; ++lane) StoreAs(states[lane], to + lane * kStateBytes);
  return to;
}

// For each of 2^12 lower ends of a state: the byte, its frequency less 1 (12 bits), and the place
// within the frequency (12 bits).
using DecoderTable = std::array<uint32_t, kScale>;

void FillDecoderTable(const Frequencies& scaled, DecoderTable* table) {
  uint32_t slot = 0;
  for (uint32_t s = 0; s < kSymbols; ++s) {
    for (uint32_t place = 0; place < scaled[s]; ++place) {
      (*table)[slot++] = place << 20 | (scaled[s] - 1) << 8 | s;
    }
  }
}

// The states that a string was put into, and the words behind them.
class Decoder {
 public:
  // `rest`: at least the states.
  Decoder(const Frequencies& scaled, absl::Span<const uint8_t> rest)
      : word_(rest.data() + kLanes * kStateBytes), end_(rest.data() + rest.size()) {
    FillDecoderTable(scaled, &table_);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      states_[lane] = LoadAs<uint32_t>(rest.data() + lane * kStateBytes);
    }
  }

  absl::Status Decode(absl::Span<uint8_t> bytes) {
    for (const uint32_t state : states_) {
      if (state < kLeastState) return Refuse(absl::StrCat("a state of ", state));
    }
    if ((end_ - word_) % kWordBytes != 0) return Refuse("half a word");
    for (size_t i = DecodeWhole(bytes); i < bytes.size(); ++i) {
      uint32_t& x = states_[i % kLanes];
      bytes[i] = SymbolOf(x);
      x = After(x);
      if (x >= kLeastState) continue;
      if (word_ == end_) return Refuse("words that are cut short");
      x = x << kWordBits | LoadAs<uint16_t>(word_);
      word_ += kWordBytes;
    }
    if (word_ != end_) return Refuse(absl::StrCat(end_ - word_, " bytes too many"));
    for (const uint32_t state : states_) {
      if (state != kLeastState) return Refuse("states that do not end where they began");
    }
    return absl::OkStatus();
  }

 private:
  uint8_t SymbolOf(uint32_t x) const { return static_cast<uint8_t>(table_[x % kScale]); }
  uint32_t After(uint32_t x) const {
    const uint32_t entry = table_[x % kScale];
    return ((entry >> 8) % kScale + 1) * (x >> kScaleBits) + (entry >> 20);
  }

  // A byte of each state after the other, as long as there are words for all; returns how many.
  size_t DecodeWhole(absl::Span<uint8_t> bytes) {
    std::array<uint32_t, kLanes> states = states_;  // not in memory that `bytes` might be
    const uint8_t* word = word_;
    size_t i = 0;
    for (; i + kLanes <= bytes.size() && end_ - word >= static_cast<ptrdiff_t>(kLanes * kWordBytes);
         i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        bytes[i + lane] = SymbolOf(states[lane]);
        const uint32_t x = After(states[lane]);
        // Whether it takes a word could not be foreseen: as in encoding no branch.
        const uint32_t is_low = x < kLeastState ? 1 : 0;
        states[lane] = x << (is_low * kWordBits) | (LoadAs<uint16_t>(word) & (0 - is_low));
        word += is_low * kWordBytes;
      }
    }
    states_ = states;
    word_ = word;
    return i;
  }

  DecoderTable table_;
  std::array<uint32_t, kLanes> states_;
  const uint8_t* word_;
  const uint8_t* const end_;
};

}  // namespace

absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes) {
  static thread_local Scratch<uint8_t> memory;
  if (bytes.empty() || bytes.size() > UINT32_MAX) return {};
  const Frequencies counts = CountsOf(bytes);
  const Frequencies scaled = Scaled(counts, bytes.size());
  std::array<uint8_t, kCountBytes + kMaxTableBytes> head;
  StoreAs(static_cast<uint32_t>(bytes.size()), head.data());
  const uint8_t* const head_end = WriteTable(scaled, head.data() + kCountBytes);
  const auto head_bytes = static_cast<size_t>(head_end - head.data());
  // What is far from shorter need not be tried.
  if (CodedBytes(counts, scaled) > 1.02 * static_cast<double>(bytes.size())) return {};
  // A byte takes 12 bits at most; a word is written that may not count.
  const size_t room = head.size() + kLanes * kStateBytes + bytes.size() / 2 * 3 + 4 * kWordBytes;
  uint8_t* const end = memory.Get(room) + room;
  uint8_t* const begin = EncodeBackward(bytes, scaled, end) - head_bytes;
  std::copy_n(head.data(), head_bytes, begin);
  const auto length = static_cast<size_t>(end - begin);
  if (length >= bytes.size()) return {};
  return absl::MakeConstSpan(begin, length);
}

absl::StatusOr<absl::Span<const uint8_t>> ReadEntropyFrame(absl::Span<const uint8_t> frame,
                                                           size_t most) {
  static thread_local Scratch<uint8_t> memory;
  if (frame.size() < kCountBytes) return Refuse("a frame without its length");
  const size_t num_bytes = LoadAs<uint32_t>(frame.data());
  if (num_bytes > most) {
    return Refuse(absl::StrCat("a frame of ", num_bytes, " bytes, want at most ", most));
  }
  frame.remove_prefix(kCountBytes);
  ASSIGN_OR_RETURN(const Frequencies scaled, ReadTable(&frame));
  if (frame.size() < kLanes * kStateBytes) return Refuse("states that are cut short");
  const auto bytes = absl::MakeSpan(memory.Get(num_bytes), num_bytes);
  RETURN_IF_ERROR(Decoder(scaled, frame).Decode(bytes));
  return absl::MakeConstSpan(bytes);
}

}  // namespace thinwire
