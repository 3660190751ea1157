#include "compress/entropy/pairs_layout.h"

#include "compress/bytes.h"
#include "compress/entropy/form_choice.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/layout.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

// Offsets in front: the number of bytes, then the form.
constexpr size_t kFormAt = 4, kFrontBytes = 5;
// Offsets behind the form: the codes' begin and count, the number of large codes and of parts.
constexpr size_t kBeginAt = 0, kCountAt = 4, kLargeAt = 8, kPartsAt = 12, kBehindFormBytes = 14;
static_assert(kFrontBytes + kBehindFormBytes == kPairsHeadBytes, "these are all");

// Size and number of parts. A part costs about 100 bytes; four parts are decoded together.
constexpr size_t kPairsOfPart = 1 << 16, kPartsTogether = 4, kMostPairParts = 1 << 10;

}  // namespace

size_t NumPartsOf(size_t rows) {
  const size_t parts = rows * kStates / kPairsOfPart;
  if (parts < 2) return 1;
  return std::min(std::max(parts / kPartsTogether, size_t{1}) * kPartsTogether, kMostPairParts);
}

PairsPlan PlanPairs(size_t num_bytes, const PairsHead& head, const Frequencies& pairs) {
  PairsPlan plan = {Scaled(pairs), 0};
  const size_t plain_bytes = kPairsHeadBytes + num_bytes - head.count + head.num_large +
                             TableBytes(plan.table) + head.num_parts * kPartLengthBytes;
  plan.frame_bytes = static_cast<double>(plain_bytes) +
                     ExpectedRansBytes(CodedBits(pairs, plan.table), head.num_parts);
  return plan;
}

Frequencies CodesOfPairs(const PairsHead& head, const Frequencies& pairs,
                         const Frequencies& large) {
  Frequencies counts = {};
  for (int pair = 0; pair < kSymbols; ++pair) {
    counts[pair % 16] += pairs[pair];
    counts[pair / 16] += pairs[pair];
  }
  for (int code = kLargeCode; code < kSymbols; ++code) counts[code] = large[code];
  counts[0] -= static_cast<uint32_t>(2 * kStates * head.num_rows() - head.count);  // padding
  return counts;
}

uint8_t* WritePairsHead(size_t num_bytes, const PairsHead& head, uint8_t* to) {
  StoreAs(static_cast<uint32_t>(num_bytes), to);
  to[kFormAt] = kPairsForm;
  to += kFrontBytes;
  StoreAs(static_cast<uint32_t>(head.begin), to + kBeginAt);
  StoreAs(static_cast<uint32_t>(head.count), to + kCountAt);
  StoreAs(static_cast<uint32_t>(head.num_large), to + kLargeAt);
  StoreAs(static_cast<uint16_t>(head.num_parts), to + kPartsAt);
  return to + kBehindFormBytes;
}

Error ViewPairsFrame(absl::Span<const uint8_t> frame, size_t num_bytes, PairsFrameView* view) {
  if (frame.size() < kBehindFormBytes) {
    return MakeError(kRefused, "entropy: a frame whose head is cut short");
  }
  PairsHead& head = view->head;
  head.begin = LoadAs<uint32_t>(frame.data() + kBeginAt);
  head.count = LoadAs<uint32_t>(frame.data() + kCountAt);
  head.num_large = LoadAs<uint32_t>(frame.data() + kLargeAt);
  head.num_parts = LoadAs<uint16_t>(frame.data() + kPartsAt);
  frame.remove_prefix(kBehindFormBytes);
  if (head.begin + head.count > num_bytes) {
    return MakeError(kRefused, "entropy: codes up to byte %zu of %zu", head.begin + head.count,
                     num_bytes);
  }
  if (head.num_parts == 0 || head.num_parts > std::max<size_t>(head.num_rows(), 1)) {
    return MakeError(kRefused, "entropy: %zu parts of %zu rows", head.num_parts, head.num_rows());
  }
  const size_t uncoded_bytes = num_bytes - head.count;
  if (frame.size() < uncoded_bytes + head.num_large) {
    return MakeError(kRefused, "entropy: uncoded bytes that are cut short");
  }
  view->uncoded = {frame.data(), uncoded_bytes};
  view->large = {frame.data() + uncoded_bytes, head.num_large};
  frame.remove_prefix(uncoded_bytes + head.num_large);
  RETURN_ERROR(ReadTable(&frame, &view->table));
  return ViewParts(head.num_parts, frame, &view->parts);
}

}  // namespace thinwire
