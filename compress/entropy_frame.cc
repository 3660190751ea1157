#include "compress/entropy_frame.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/context_choice.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/rans.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/stretches.h"
#include "compress/frequencies.h"
#include "compress/pairs_frame.h"

namespace thinwire {
namespace {

constexpr size_t kCountBytes = 4, kBoundariesBytes = 2;
constexpr size_t kMostHeadBytes = 1 + (3 + Neighbours::kMost) * kCountBytes + kBoundariesBytes;

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("entropy: ", why));
}

// What a frame says before its tables.
struct Head {
  size_t num_bytes = 0;
  Neighbours neighbours;
  // Without neighbours all bytes are coded, with one table; with them `count` from `begin` on.
  size_t begin = 0, count = 0;
  uint16_t boundaries = 0;  // see ChooseBoundaries

  // Coded bytes are in rows where they have neighbours.
  size_t coded_bytes() const {
    return neighbours.count == 0 ? num_bytes : NumRows(count) * kStates;
  }
  size_t uncoded_bytes() const { return num_bytes - count; }
  int num_contexts() const { return 1 + __builtin_popcount(boundaries); }
  uint8_t ContextOf(int sum) const {
    return static_cast<uint8_t>(__builtin_popcount(boundaries & ((2u << sum) - 1)));
  }
};

// Returns the end.
uint8_t* WriteHead(const Head& head, uint8_t* to) {
  const auto write = [&to](auto value) {
    StoreAs(value, to);
    to += sizeof(value);
  };
  write(static_cast<uint32_t>(head.num_bytes));
  write(static_cast<uint8_t>(head.neighbours.count));
  if (head.neighbours.count == 0) return to;
  write(static_cast<uint32_t>(head.begin));
  write(static_cast<uint32_t>(head.count));
  write(head.boundaries);
  for (int k = 0; k < head.neighbours.count; ++k) write(head.neighbours.rows[k]);
  return to;
}

// Takes numbers off the front of a frame.
class Reader {
 public:
  explicit Reader(absl::Span<const uint8_t>* frame) : frame_(frame) {}

  template <typename T>
  absl::StatusOr<T> Next() {
    if (frame_->size() < sizeof(T)) return Refuse("a frame whose head is cut short");
    const T value = LoadAs<T>(frame_->data());
    frame_->remove_prefix(sizeof(T));
    return value;
  }

 private:
  absl::Span<const uint8_t>* const frame_;
};

absl::Status ReadNeighbours(Reader* reader, Head* head) {
  ASSIGN_OR_RETURN(head->begin, reader->Next<uint32_t>());
  ASSIGN_OR_RETURN(head->count, reader->Next<uint32_t>());
  if (head->begin + head->count > head->num_bytes) {
    return Refuse(
        absl::StrCat("codes up to byte ", head->begin + head->count, " of ", head->num_bytes));
  }
  ASSIGN_OR_RETURN(head->boundaries, reader->Next<uint16_t>());
  if (head->boundaries & 1) return Refuse("a boundary before the first sum");
  for (int k = 0; k < head->neighbours.count; ++k) {
    ASSIGN_OR_RETURN(head->neighbours.rows[k], reader->Next<uint32_t>());
    if (head->neighbours.rows[k] == 0) return Refuse("a neighbour 0 rows before a code");
  }
  return absl::OkStatus();
}

// Takes the head off the front of `frame`.
absl::StatusOr<Head> ReadHead(absl::Span<const uint8_t>* frame, size_t most) {
  Reader reader(frame);
  Head head;
  ASSIGN_OR_RETURN(head.num_bytes, reader.Next<uint32_t>());
  head.count = head.num_bytes;
  if (head.num_bytes > most) {
    return Refuse(absl::StrCat("a frame of ", head.num_bytes, " bytes, want at most ", most));
  }
  ASSIGN_OR_RETURN(head.neighbours.count, reader.Next<uint8_t>());
  if (head.neighbours.count == kPairsForm) return head;
  if (head.neighbours.count > Neighbours::kMost) {
    return Refuse(
        absl::StrCat(head.neighbours.count, " neighbours, want at most ", Neighbours::kMost));
  }
  if (head.neighbours.count > 0) RETURN_IF_ERROR(ReadNeighbours(&reader, &head));
  return head;
}

using Tables = std::array<Frequencies, kSums>;

// One string on its way into a frame.
class FrameWriter {
 public:
  explicit FrameWriter(absl::Span<const uint8_t> bytes) : bytes_(bytes), coded_(bytes) {
    head_.num_bytes = head_.count = bytes.size();
  }

  // Codes what is in `place` with neighbours, if that is likely to pay.
  void UseNeighbours(const CodesPlace& place) {
    static thread_local Scratch<uint8_t> rows_memory, sums_memory;
    const auto codes = bytes_.subspan(place.begin, place.count);
    head_.neighbours = ChooseNeighbours(codes, place.distances);
    if (head_.neighbours.count == 0) return;
    const size_t num_rows = NumRows(place.count);
    uint8_t* const rows = rows_memory.Get(num_rows * kStates);
    ToRows(codes.data(), place.count, rows);
    head_.begin = place.begin;
    head_.count = place.count;
    coded_ = {rows, num_rows * kStates};
    uint8_t* const sums = sums_memory.Get(num_rows * kStates);
    SumsOfNeighbours(head_.neighbours, rows, 0, num_rows, sums);
    sums_ = sums;
  }

  bool has_neighbours() const { return head_.neighbours.count > 0; }

  // Empty if that would not be shorter.
  absl::Span<const uint8_t> Write() {
    static thread_local Scratch<uint8_t> memory;
    const double coded_bytes = FillTables();
    // What is far from shorter need not be tried.
    if (coded_bytes + static_cast<double>(head_.uncoded_bytes()) >
        1.02 * static_cast<double>(bytes_.size())) {
      return {};
    }
    const size_t front =
        kMostHeadBytes + head_.uncoded_bytes() + head_.num_contexts() * kMaxTableBytes;
    const size_t room = front + RansBytes(coded_.size());
    uint8_t* const begin = memory.Get(room);
    uint8_t* to = WriteHead(head_, begin);
    to = std::copy_n(bytes_.data(), head_.begin, to);
    to = std::copy(bytes_.begin() + head_.begin + head_.count, bytes_.end(), to);
    for (int t = 0; t < head_.num_contexts(); ++t) to = WriteTable(tables_[t], to);
    uint8_t* const end = begin + room;
    uint8_t* const states = RansEncode(coded_.data(), coded_.size(), sums_, of_sum_.data(),
                                       sums_ == nullptr ? 1 : kSums, end);
    to = std::copy(states, end, to);
    const auto length = static_cast<size_t>(to - begin);
    return length < bytes_.size() ? absl::MakeConstSpan(begin, length)
                                  : absl::Span<const uint8_t>();
  }

 private:
  // Returns how many bytes the states and their words will take, within a few.
  double FillTables() {
    const SumCounts counts = sums_ == nullptr ? SumCounts{CountsOf(coded_)} : Counted();
    if (sums_ != nullptr) head_.boundaries = ChooseBoundaries(counts);
    Tables of_context = {};
    for (int sum = 0; sum < kSums; ++sum) {
      Frequencies& context = of_context[head_.ContextOf(sum)];
      for (int s = 0; s < kSymbols; ++s) context[s] += counts[sum][s];
    }
    double bits = 0;
    for (int t = 0; t < head_.num_contexts(); ++t) {
      tables_[t] = Scaled(of_context[t]);
      bits += CodedBits(of_context[t], tables_[t]);
    }
    for (int sum = 0; sum < kSums; ++sum) of_sum_[sum] = tables_[head_.ContextOf(sum)];
    return bits / 8 + kStatesBytes;
  }
  SumCounts Counted() const {
    SumCounter counter;
    counter.Add(coded_, sums_);
    return counter.Total();
  }

  const absl::Span<const uint8_t> bytes_;
  Head head_;
  absl::Span<const uint8_t> coded_;
  const uint8_t* sums_ = nullptr;  // of each byte in coded_; null without neighbours
  Tables tables_;                  // of the contexts
  Tables of_sum_;                  // that of its context
};

}  // namespace

absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes) {
  if (bytes.empty() || bytes.size() > UINT32_MAX - kStates) return {};
  FrameWriter writer(bytes);
  writer.UseNeighbours(codes);
  if (!writer.has_neighbours()) {
    const auto pairs = PairsFrame(bytes, codes);
    if (!pairs.empty()) return pairs;
  }
  return writer.Write();
}

absl::StatusOr<absl::Span<const uint8_t>> ReadEntropyFrame(absl::Span<const uint8_t> frame,
                                                           size_t most) {
  static thread_local Scratch<uint8_t> memory, rows_memory;
  ASSIGN_OR_RETURN(const Head head, ReadHead(&frame, most));
  if (head.neighbours.count == kPairsForm) {
    const absl::Span<uint8_t> bytes(memory.Get(head.num_bytes), head.num_bytes);
    RETURN_IF_ERROR(ReadPairsFrame(frame, bytes));
    return bytes;
  }
  if (frame.size() < head.uncoded_bytes()) return Refuse("uncoded bytes that are cut short");
  const auto uncoded = frame.subspan(0, head.uncoded_bytes());
  frame.remove_prefix(head.uncoded_bytes());
  Tables tables;
  for (int t = 0; t < head.num_contexts(); ++t) {
    ASSIGN_OR_RETURN(tables[t], ReadTable(&frame));
  }
  if (frame.size() < kStatesBytes) return Refuse("states that are cut short");
  RansModel model{head.neighbours, {}, tables.data(), head.num_contexts()};
  for (int sum = 0; sum < kSums; ++sum) model.context_of_sum[sum] = head.ContextOf(sum);
  uint8_t* const bytes = memory.Get(head.num_bytes);
  const bool has_rows = head.neighbours.count > 0;
  uint8_t* const coded = has_rows ? rows_memory.Get(head.coded_bytes()) : bytes;
  const RansPart part{frame.data(), frame.data() + frame.size(), coded, head.coded_bytes()};
  const char* const wrong = RansDecode(model, &part, 1);
  if (wrong != nullptr) return Refuse(wrong);
  if (has_rows) {
    std::copy_n(uncoded.begin(), head.begin, bytes);
    FromRows(coded, head.count, bytes + head.begin);
    std::copy(uncoded.begin() + head.begin, uncoded.end(), bytes + head.begin + head.count);
  }
  return absl::MakeConstSpan(bytes, head.num_bytes);
}

}  // namespace thinwire
