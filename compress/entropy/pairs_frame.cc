#include "compress/entropy/pairs_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/bytes.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/pairs.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/entropy/parts.h"
#include "compress/entropy/rans.h"
#include "compress/scratch.h"

namespace thinwire {
namespace {

// Codes in pairs, in this thread's memory.
struct Pairs {
  absl::Span<const uint8_t> rows;  // whole rows
  absl::Span<const uint8_t> large;
};

Pairs PairsOf(absl::Span<const uint8_t> codes) {
  static thread_local Scratch<uint8_t> pairs_memory, large_memory;
  const size_t num_pairs = NumPairs(codes.size()), in_rows = NumRows(num_pairs) * kStates;
  uint8_t* const pairs = pairs_memory.Get(in_rows);
  uint8_t* const large = large_memory.Get(codes.size() + 1);
  const size_t num_large = ToPairs(codes.data(), codes.size(), pairs, large);
  std::fill(pairs + num_pairs, pairs + in_rows, 0);
  return {{pairs, in_rows}, {large, num_large}};
}

size_t MostFrameBytes(size_t num_bytes, const PairsHead& head) {
  return kPairsHeadBytes + num_bytes - head.count + head.num_large + kMaxTableBytes +
         head.num_parts * kPartLengthBytes + PartsBytes(head.num_rows() * kStates, head.num_parts);
}

const char* DecodeParts(const PairsFrameView& view, uint8_t* pairs) {
  static thread_local Scratch<RansPart> memory;
  const PairsHead& head = view.head;
  RansPart* const parts = memory.Get(head.num_parts);
  for (size_t part = 0; part < head.num_parts; ++part) {
    const size_t begin = head.part_begin(part);
    parts[part] = {view.parts[part].begin(), view.parts[part].end(), pairs + begin,
                   head.part_begin(part + 1) - begin};
  }
  return RansDecode({{}, {}, &view.table, 1}, parts, head.num_parts);
}

}  // namespace

bool MayPayInPairs(absl::Span<const uint8_t> codes) {
  const size_t stride = PairLookStride(codes.size());
  size_t large = 0;
  for (size_t i = 0; i < codes.size(); i += stride) large += codes[i] >= kLargeCode;
  return MayPayInPairs(codes.size(), large);
}

PairsFrameWriter::PairsFrameWriter(absl::Span<const uint8_t> bytes, const CodesPlace& place)
    : bytes_(bytes) {
  const Pairs pairs = PairsOf(bytes.subspan(place.begin, place.count));
  rows_ = pairs.rows;
  large_ = pairs.large;
  head_.begin = place.begin;
  head_.count = place.count;
  head_.num_large = large_.size();
  head_.num_parts = NumPartsOf(head_.num_rows());
  counts_ = CountsOf(rows_);
  plan_ = PlanPairs(bytes.size(), head_, counts_);
}

Frequencies PairsFrameWriter::CountsOfCodes() const {
  return CodesOfPairs(head_, counts_, CountsOf(large_));
}

absl::Span<const uint8_t> PairsFrameWriter::Write() const {
  static thread_local Scratch<uint8_t> memory;
  uint8_t* const frame = memory.Get(MostFrameBytes(bytes_.size(), head_));
  uint8_t* to = WritePairsHead(bytes_.size(), head_, frame);
  to = std::copy_n(bytes_.data(), head_.begin, to);
  to = std::copy(bytes_.begin() + head_.begin + head_.count, bytes_.end(), to);
  to = std::copy(large_.begin(), large_.end(), to);
  uint8_t* const lengths = WriteTable(plan_.table, to);
  to = WriteParts({rows_, nullptr, &plan_.table, 1, head_.num_parts}, lengths,
                  lengths + head_.num_parts * kPartLengthBytes);
  return {frame, static_cast<size_t>(to - frame)};
}

absl::Status ReadPairsFrame(absl::Span<const uint8_t> behind_form, absl::Span<uint8_t> bytes) {
  static thread_local Scratch<uint8_t> memory;
  PairsFrameView view;
  RETURN_IF_ERROR(ToStatus(ViewPairsFrame(behind_form, bytes.size(), &view)));
  const PairsHead& head = view.head;
  uint8_t* const pairs = memory.Get(head.num_rows() * kStates);
  const char* wrong = DecodeParts(view, pairs);
  uint8_t* const codes = std::copy_n(view.uncoded.begin(), head.begin, bytes.data());
  if (wrong == nullptr) {
    wrong = FromPairs(pairs, head.count, view.large.data(), view.large.size(), codes);
  }
  if (wrong != nullptr) return absl::InvalidArgumentError(absl::StrCat("entropy: ", wrong));
  std::copy(view.uncoded.begin() + head.begin, view.uncoded.end(), codes + head.count);
  return absl::OkStatus();
}

}  // namespace thinwire
