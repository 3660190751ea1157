#include "compress/pairs_frame.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/pairs.h"
#include "compress/cpu/rans.h"
#include "compress/cpu/scratch.h"
#include "compress/frequencies.h"
#include "compress/pairs_layout.h"

namespace thinwire {
namespace {

bool AreMostlySmall(absl::Span<const uint8_t> codes) {
  const size_t stride = PairLookStride(codes.size());
  size_t large = 0;
  for (size_t i = 0; i < codes.size(); i += stride) large += codes[i] >= kLargeCode;
  return large <= kMostLargeLooks;
}

// The codes two at a time, in this thread's memory.
struct Pairs {
  absl::Span<const uint8_t> rows;  // whole ones
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

// Returns the end.
uint8_t* WriteParts(const PairsHead& head, absl::Span<const uint8_t> rows, const Frequencies& table,
                    uint8_t* lengths) {
  static thread_local Scratch<uint8_t> memory;
  const size_t room = RansBytes(head.longest_part());
  uint8_t* const end = memory.Get(room) + room;
  uint8_t* to = lengths + head.num_parts * kPartLengthBytes;
  for (size_t part = 0; part < head.num_parts; ++part, lengths += kPartLengthBytes) {
    const size_t begin = head.part_begin(part);
    const uint8_t* const from =
        RansEncode(rows.data() + begin, head.part_begin(part + 1) - begin, nullptr, &table, 1, end);
    StoreAs(static_cast<uint32_t>(end - from), lengths);
    to = std::copy(from, static_cast<const uint8_t*>(end), to);
  }
  return to;
}

size_t MostFrameBytes(size_t num_bytes, const PairsHead& head) {
  return kPairsHeadBytes + num_bytes - head.count + head.num_large + kMaxTableBytes +
         head.num_parts * (kPartLengthBytes + RansBytes(head.longest_part()));
}

const char* DecodeParts(const PairsFrameView& view, uint8_t* pairs) {
  static thread_local Scratch<RansPart> memory;
  const PairsHead& head = view.head;
  RansPart* const parts = memory.Get(head.num_parts);
  const uint8_t* from = view.parts.data();
  for (size_t part = 0; part < head.num_parts; ++part) {
    const uint8_t* const end = from + view.length(part);
    const size_t begin = head.part_begin(part);
    parts[part] = {from, end, pairs + begin, head.part_begin(part + 1) - begin};
    from = end;
  }
  return RansDecode({{}, {}, &view.table, 1}, parts, head.num_parts);
}

}  // namespace

absl::Span<const uint8_t> PairsFrame(absl::Span<const uint8_t> bytes, const CodesPlace& place) {
  static thread_local Scratch<uint8_t> memory;
  const auto codes = bytes.subspan(place.begin, place.count);
  if (codes.empty() || !AreMostlySmall(codes)) return {};
  const Pairs pairs = PairsOf(codes);
  PairsHead head{place.begin, place.count, pairs.large.size(), 1};
  head.num_parts = NumPartsOf(head.num_rows());
  const auto table = TableOfPairs(head, CountsOf(pairs.rows), CountsOf(pairs.large));
  if (!table.has_value()) return {};
  uint8_t* const frame = memory.Get(MostFrameBytes(bytes.size(), head));
  uint8_t* to = WritePairsHead(bytes.size(), head, frame);
  to = std::copy_n(bytes.data(), place.begin, to);
  to = std::copy(codes.end(), bytes.end(), to);
  to = std::copy(pairs.large.begin(), pairs.large.end(), to);
  to = WriteParts(head, pairs.rows, *table, WriteTable(*table, to));
  const auto length = static_cast<size_t>(to - frame);
  return length < bytes.size() ? absl::MakeConstSpan(frame, length) : absl::Span<const uint8_t>();
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
