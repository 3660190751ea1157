#include "compress/pairs_frame.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/cpu/bytes.h"
#include "compress/cpu/pairs.h"
#include "compress/cpu/rans.h"
#include "compress/cpu/scratch.h"
#include "compress/cpu/stretches.h"
#include "compress/frequencies.h"

namespace thinwire {
namespace {

// Before the head: the number of bytes, and the form.
constexpr size_t kFormAt = 4, kFrontBytes = 5;
// In the head: the codes' begin and count, the number of large ones, that of parts.
constexpr size_t kBeginAt = 0, kCountAt = 4, kLargeAt = 8, kPartsAt = 12, kHeadBytes = 14;
constexpr size_t kLengthBytes = 4;  // of a part's length
// More than one of so many codes are not looked at, and that many.
constexpr size_t kLooks = 4096, kMostLargeLooks = kLooks / 64;
// More is too much for twice the speed.
constexpr double kMostLonger = 1.01;
// A part takes about 70 bytes, here half a percent of half a bit for each pair. Four at a time are
// decoded together.
constexpr size_t kPairsOfPart = 1 << 16, kPartsTogether = 4, kMostParts = 1 << 10;

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("entropy: ", why));
}

size_t NumPartsOf(size_t rows) {
  const size_t parts = rows * kStates / kPairsOfPart;
  if (parts < 2) return 1;
  return std::min(std::max(parts / kPartsTogether, size_t{1}) * kPartsTogether, kMostParts);
}

// The first row of a part.
size_t RowOfPart(size_t part, size_t num_parts, size_t rows) { return part * rows / num_parts; }

bool AreMostlySmall(absl::Span<const uint8_t> codes) {
  const size_t stride = codes.size() / kLooks + 1;
  size_t large = 0;
  for (size_t i = 0; i < codes.size(); i += stride) large += codes[i] >= kLargeCode;
  return large <= kMostLargeLooks;
}

double TableBits(const Frequencies& table) {
  uint8_t bytes[kMaxTableBytes];
  return 8.0 * static_cast<double>(WriteTable(table, bytes) - bytes);
}

// Bits of codes of a byte each with one table.
double BitsWithoutPairs(const Frequencies& pair_counts, absl::Span<const uint8_t> large) {
  Frequencies counts = {};
  for (int pair = 0; pair < kSymbols; ++pair) {
    counts[pair % 16] += pair_counts[pair];
    counts[pair / 16] += pair_counts[pair];
  }
  counts[kLargeCode] = 0;
  for (const uint8_t code : large) ++counts[code];
  const Frequencies table = Scaled(counts);
  return CodedBits(counts, table) + TableBits(table);
}

}  // namespace

absl::Span<const uint8_t> PairsFrame(absl::Span<const uint8_t> bytes, const CodesPlace& place) {
  static thread_local Scratch<uint8_t> pairs_memory, large_memory, part_memory, memory;
  const auto codes = bytes.subspan(place.begin, place.count);
  if (codes.empty() || !AreMostlySmall(codes)) return {};
  const size_t rows = NumRows(NumPairs(codes.size())), num_parts = NumPartsOf(rows);
  uint8_t* const pairs = pairs_memory.Get(rows * kStates);
  uint8_t* const large = large_memory.Get(codes.size() + 1);
  const size_t num_large = ToPairs(codes.data(), codes.size(), pairs, large);
  std::fill(pairs + NumPairs(codes.size()), pairs + rows * kStates, 0);
  const Frequencies counts = CountsOf({pairs, rows * kStates}), table = Scaled(counts);
  // A state is worth about half of its bytes.
  const double plain_bits =
      8.0 * static_cast<double>(num_large + (num_parts - 1) * kStatesBytes / 2);
  if (CodedBits(counts, table) + TableBits(table) + plain_bits >
      kMostLonger * BitsWithoutPairs(counts, {large, num_large})) {
    return {};
  }
  const size_t most_rows = rows / num_parts + 1;
  const size_t part_room = RansBytes(most_rows * kStates);
  uint8_t* const part_bytes = part_memory.Get(part_room);
  uint8_t* const frame =
      memory.Get(kFrontBytes + kHeadBytes + bytes.size() - codes.size() + num_large +
                 kMaxTableBytes + num_parts * (kLengthBytes + part_room));
  StoreAs(static_cast<uint32_t>(bytes.size()), frame);
  frame[kFormAt] = kPairsForm;
  uint8_t* const head = frame + kFrontBytes;
  StoreAs(static_cast<uint32_t>(place.begin), head + kBeginAt);
  StoreAs(static_cast<uint32_t>(place.count), head + kCountAt);
  StoreAs(static_cast<uint32_t>(num_large), head + kLargeAt);
  StoreAs(static_cast<uint16_t>(num_parts), head + kPartsAt);
  uint8_t* to = std::copy_n(bytes.data(), place.begin, head + kHeadBytes);
  to = std::copy(codes.end(), bytes.end(), to);
  to = std::copy_n(large, num_large, to);
  uint8_t* lengths = WriteTable(table, to);
  to = lengths + num_parts * kLengthBytes;
  for (size_t part = 0; part < num_parts; ++part, lengths += kLengthBytes) {
    const size_t first = RowOfPart(part, num_parts, rows) * kStates;
    const size_t last = RowOfPart(part + 1, num_parts, rows) * kStates;
    uint8_t* const end = part_bytes + part_room;
    const uint8_t* const from = RansEncode(pairs + first, last - first, nullptr, &table, 1, end);
    StoreAs(static_cast<uint32_t>(end - from), lengths);
    to = std::copy(from, static_cast<const uint8_t*>(end), to);
  }
  const auto length = static_cast<size_t>(to - frame);
  return length < bytes.size() ? absl::MakeConstSpan(frame, length) : absl::Span<const uint8_t>();
}

absl::Status ReadPairsFrame(absl::Span<const uint8_t> frame, absl::Span<uint8_t> bytes) {
  static thread_local Scratch<uint8_t> pairs_memory;
  static thread_local Scratch<RansPart> parts_memory;
  if (frame.size() < kHeadBytes) return Refuse("a frame whose head is cut short");
  const uint8_t* const head = frame.data();
  const size_t begin = LoadAs<uint32_t>(head + kBeginAt);
  const size_t count = LoadAs<uint32_t>(head + kCountAt);
  const size_t num_large = LoadAs<uint32_t>(head + kLargeAt);
  const size_t num_parts = LoadAs<uint16_t>(head + kPartsAt);
  frame.remove_prefix(kHeadBytes);
  if (begin + count > bytes.size()) {
    return Refuse(absl::StrCat("codes up to byte ", begin + count, " of ", bytes.size()));
  }
  const size_t rows = NumRows(NumPairs(count));
  if (num_parts == 0 || num_parts > std::max<size_t>(rows, 1)) {
    return Refuse(absl::StrCat(num_parts, " parts of ", rows, " rows"));
  }
  if (frame.size() < bytes.size() - count + num_large) {
    return Refuse("uncoded bytes that are cut short");
  }
  const auto uncoded = frame.subspan(0, bytes.size() - count);
  const auto large = frame.subspan(uncoded.size(), num_large);
  frame.remove_prefix(uncoded.size() + num_large);
  ASSIGN_OR_RETURN(const Frequencies table, ReadTable(&frame));
  if (frame.size() < num_parts * kLengthBytes) return Refuse("lengths that are cut short");
  const uint8_t* lengths = frame.data();
  frame.remove_prefix(num_parts * kLengthBytes);
  uint8_t* const pairs = pairs_memory.Get(rows * kStates);
  RansPart* const parts = parts_memory.Get(num_parts);
  for (size_t part = 0; part < num_parts; ++part, lengths += kLengthBytes) {
    const size_t length = LoadAs<uint32_t>(lengths);
    if (length < kStatesBytes || length > frame.size()) {
      return Refuse(
          absl::StrCat("a part of ", length, " bytes, want ", kStatesBytes, " to ", frame.size()));
    }
    const size_t first = RowOfPart(part, num_parts, rows) * kStates;
    const size_t last = RowOfPart(part + 1, num_parts, rows) * kStates;
    parts[part] = {frame.data(), frame.data() + length, pairs + first, last - first};
    frame.remove_prefix(length);
  }
  if (!frame.empty()) return Refuse("bytes behind the last part");
  const RansModel model{{}, {}, &table, 1};
  if (const char* const wrong = RansDecode(model, parts, num_parts)) return Refuse(wrong);
  uint8_t* const codes = std::copy_n(uncoded.begin(), begin, bytes.data());
  if (const char* const wrong = FromPairs(pairs, count, large.data(), num_large, codes)) {
    return Refuse(wrong);
  }
  std::copy(uncoded.begin() + begin, uncoded.end(), codes + count);
  return absl::OkStatus();
}

}  // namespace thinwire
