#include "compress/entropy_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/context_choice.h"
#include "compress/cpu/rans.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/stretches.h"
#include "compress/entropy_layout.h"
#include "compress/frequencies.h"
#include "compress/pairs_frame.h"
#include "compress/pairs_layout.h"

namespace thinwire {
namespace {

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
    if (!has_neighbours()) return;
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

  bool has_neighbours() const { return head_.has_neighbours(); }

  // Empty if that would not be shorter.
  absl::Span<const uint8_t> Write() {
    static thread_local Scratch<uint8_t> memory;
    EntropyTables tables;
    if (!ChooseTables(Counts(), &head_, &tables)) return {};
    const size_t room = kMostEntropyHeadBytes + head_.uncoded_bytes() +
                        head_.num_contexts() * kMaxTableBytes + RansBytes(coded_.size());
    uint8_t* const begin = memory.Get(room);
    uint8_t* to = WriteEntropyHead(head_, begin);
    to = std::copy_n(bytes_.data(), head_.begin, to);
    to = std::copy(bytes_.begin() + head_.begin + head_.count, bytes_.end(), to);
    to = WriteTables(head_, tables, to);
    uint8_t* const end = begin + room;
    uint8_t* const states = RansEncode(coded_.data(), coded_.size(), sums_, tables.of_sum.data(),
                                       sums_ == nullptr ? 1 : kSums, end);
    to = std::copy(states, end, to);
    const auto length = static_cast<size_t>(to - begin);
    return length < bytes_.size() ? absl::MakeConstSpan(begin, length)
                                  : absl::Span<const uint8_t>();
  }

 private:
  SumCounts Counts() const {
    if (sums_ == nullptr) return {CountsOf(coded_)};
    SumCounter counter;
    counter.Add(coded_, sums_);
    return counter.Total();
  }

  const absl::Span<const uint8_t> bytes_;
  EntropyHead head_;
  absl::Span<const uint8_t> coded_;
  const uint8_t* sums_ = nullptr;  // of each byte in coded_; null without neighbours
};

}  // namespace

absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes) {
  if (bytes.empty() || bytes.size() > kMostEntropyBytes) return {};
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
  EntropyHead head;
  RETURN_IF_ERROR(ToStatus(ReadEntropyHead(&frame, most, &head)));
  if (head.neighbours.count == kPairsForm) {
    const absl::Span<uint8_t> bytes(memory.Get(head.num_bytes), head.num_bytes);
    RETURN_IF_ERROR(ReadPairsFrame(frame, bytes));
    return bytes;
  }
  EntropyFrameView view;
  RETURN_IF_ERROR(ToStatus(ViewEntropyFrame(head, frame, &view)));
  RansModel model{head.neighbours, {}, view.of_context.data(), head.num_contexts()};
  std::copy_n(view.context_of_sum, kSums, model.context_of_sum);
  uint8_t* const bytes = memory.Get(head.num_bytes);
  uint8_t* const coded = head.has_neighbours() ? rows_memory.Get(head.coded_bytes()) : bytes;
  const RansPart part{view.states.begin(), view.states.end(), coded, head.coded_bytes()};
  const char* const wrong = RansDecode(model, &part, 1);
  if (wrong != nullptr) return absl::InvalidArgumentError(absl::StrCat("entropy: ", wrong));
  if (head.has_neighbours()) {
    uint8_t* const codes = std::copy_n(view.uncoded.begin(), head.begin, bytes);
    FromRows(coded, head.count, codes);
    std::copy(view.uncoded.begin() + head.begin, view.uncoded.end(), codes + head.count);
  }
  return absl::MakeConstSpan(bytes, head.num_bytes);
}

}  // namespace thinwire
