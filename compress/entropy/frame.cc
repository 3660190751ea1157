#include "compress/entropy/frame.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "base/status.h"
#include "compress/bytes.h"
#include "compress/entropy/context_choice.h"
#include "compress/entropy/form_choice.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/layout.h"
#include "compress/entropy/pairs_frame.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/parts.h"
#include "compress/entropy/rans.h"
#include "compress/entropy/stretches.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Writer of a string as a frame that codes one byte at a time. Its data lie in this thread's
// memory.
class BytesFrameWriter {
 public:
  explicit BytesFrameWriter(absl::Span<const uint8_t> bytes)
      : bytes_(bytes), head_(HeadWithoutNeighbours(bytes.size())), coded_(bytes) {}

  // Codes the codes at `place` with these neighbours, in these rows.
  void UseNeighbours(const CodesPlace& place, const ContextChoice& choice) {
    static thread_local Scratch<uint8_t> rows_memory, sums_memory;
    const size_t num_rows = NumRows(place.count);
    uint8_t* const rows = rows_memory.Get(num_rows * kStates);
    ToRows(bytes_.data() + place.begin, place.count, choice.layout, rows);
    head_.neighbours = choice.neighbours;
    head_.layout = choice.layout;
    head_.is_in_parts = place.count >= kLeastInParts;
    head_.begin = place.begin;
    head_.count = place.count;
    coded_ = {rows, num_rows * kStates};
    uint8_t* const sums = sums_memory.Get(num_rows * kStates);
    SumsOfNeighbours(choice.neighbours, choice.layout, rows, num_rows, sums);
    sums_ = sums;
  }

  // Returns the histogram per sum; requires neighbours.
  SumCounts Counts() const {
    SumCounter counter;
    counter.Add(coded_, sums_);
    return counter.Total();
  }

  // Chooses the tables. Returns how many bytes the frame is expected to take.
  double Plan(const SumCounts& counts) { return ChooseTables(counts, &head_, &tables_); }

  absl::Span<const uint8_t> Write() const {
    static thread_local Scratch<uint8_t> plain_memory, neighbours_memory;
    const size_t room = kMostEntropyHeadBytes + head_.uncoded_bytes() +
                        head_.num_contexts() * kMaxTableBytes + head_.lengths_bytes() +
                        PartsBytes(coded_.size(), head_.layout.num_parts);
    uint8_t* const begin = (sums_ == nullptr ? plain_memory : neighbours_memory).Get(room);
    uint8_t* to = WriteEntropyHead(head_, begin);
    to = std::copy_n(bytes_.data(), head_.begin, to);
    to = std::copy(bytes_.begin() + head_.begin + head_.count, bytes_.end(), to);
    to = WriteTables(head_, tables_, to);
    uint8_t* const parts = to + head_.lengths_bytes();
    const StringInParts string = {coded_, sums_, tables_.of_sum.data(),
                                  sums_ == nullptr ? 1 : kSums, head_.layout.num_parts};
    to = WriteParts(string, head_.is_in_parts ? to : nullptr, parts);
    return {begin, static_cast<size_t>(to - begin)};
  }

 private:
  const absl::Span<const uint8_t> bytes_;
  EntropyHead head_;
  EntropyTables tables_;
  absl::Span<const uint8_t> coded_;
  const uint8_t* sums_ = nullptr;  // one per byte of coded_; null without neighbours
};

// A string in all forms that its frame may have.
class Forms {
 public:
  Forms(absl::Span<const uint8_t> bytes, const CodesPlace& place)
      : bytes_(bytes), plain_(bytes), with_neighbours_(bytes) {
    const auto codes = bytes.subspan(place.begin, place.count);
    const ContextChoice choice = ChooseNeighbours(codes, place.distances);
    absl::optional<Frequencies> counts;  // of the codes
    if (choice.neighbours.count > 0) {
      with_neighbours_.UseNeighbours(place, choice);
      const SumCounts of_sum = with_neighbours_.Counts();
      expected_.neighbours = with_neighbours_.Plan(of_sum);
      counts = CodesOfSums(of_sum, place.count);
    }
    if (!codes.empty() && choice.may_pay_in_pairs && MayPayInPairs(codes)) {
      pairs_.emplace(bytes, place);
      expected_.pairs = pairs_->expected_bytes();
      if (!counts.has_value()) counts = pairs_->CountsOfCodes();
    }
    SumCounts of_all = {counts.has_value() ? *counts : CountsOf(codes)};
    AddCounts(CountsOf(bytes.subspan(0, place.begin)), &of_all[0]);
    AddCounts(CountsOf(bytes.subspan(place.begin + place.count)), &of_all[0]);
    expected_.plain = plain_.Plan(of_all);
  }

  // Returns the frame of the form that costs least; empty if that is not shorter than the string.
  absl::Span<const uint8_t> Best() const {
    absl::Span<const uint8_t> best;
    double least = static_cast<double>(bytes_.size());
    for (const EntropyForm form : FormsToMake(expected_, bytes_.size())) {
      const absl::Span<const uint8_t> frame = Write(form);
      const double cost = FormCost(form, static_cast<double>(frame.size()));
      if (frame.size() >= bytes_.size() || cost >= least) continue;
      least = cost;
      best = frame;
    }
    return best;
  }

  // Returns the frame of this form; empty if the form was not considered for the string.
  absl::Span<const uint8_t> Write(EntropyForm form) const {
    switch (form) {
      case EntropyForm::kPlain:
        return plain_.Write();
      case EntropyForm::kNeighbours:
        if (std::isinf(expected_.neighbours)) return {};
        return with_neighbours_.Write();
      case EntropyForm::kPairs:
        if (!pairs_.has_value()) return {};
        return pairs_->Write();
    }
    return {};
  }

 private:
  const absl::Span<const uint8_t> bytes_;
  BytesFrameWriter plain_, with_neighbours_;
  absl::optional<PairsFrameWriter> pairs_;
  FormBytes expected_;
};

}  // namespace

absl::Span<const uint8_t> EntropyFrame(absl::Span<const uint8_t> bytes, const CodesPlace& codes) {
  if (bytes.empty() || bytes.size() > kMostEntropyBytes) return {};
  return Forms(bytes, codes).Best();
}

absl::Span<const uint8_t> EntropyFrameOfForm(EntropyForm form, absl::Span<const uint8_t> bytes,
                                             const CodesPlace& codes) {
  if (bytes.empty() || bytes.size() > kMostEntropyBytes) return {};
  if (form == EntropyForm::kPairs) {
    if (codes.count == 0) return {};
    return PairsFrameWriter(bytes, codes).Write();
  }
  return Forms(bytes, codes).Write(form);
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
  std::vector<RansPart> parts;
  for (const absl::Span<const uint8_t> part : view.parts) {
    const size_t begin = head.PartBegin(parts.size()), end = head.PartBegin(parts.size() + 1);
    parts.push_back({part.begin(), part.end(), coded + begin, end - begin});
  }
  const char* const wrong = RansDecode(model, parts.data(), parts.size());
  if (wrong != nullptr) return absl::InvalidArgumentError(absl::StrCat("entropy: ", wrong));
  if (head.has_neighbours()) {
    uint8_t* const codes = std::copy_n(view.uncoded.begin(), head.begin, bytes);
    FromRows(coded, head.count, head.layout, codes);
    std::copy(view.uncoded.begin() + head.begin, view.uncoded.end(), codes + head.count);
  }
  return absl::MakeConstSpan(bytes, head.num_bytes);
}

}  // namespace thinwire
