#include "compress/entropy/layout.h"

#include <algorithm>

#include "compress/bytes.h"
#include "compress/entropy/form_choice.h"
#include "compress/entropy/frequencies.h"
#include "compress/entropy/pairs_layout.h"
#include "compress/refusals.h"

namespace thinwire {
namespace {

// Reads numbers and removes them from the front of a frame.
class Reader {
 public:
  explicit Reader(absl::Span<const uint8_t>* frame) : frame_(frame) {}

  template <typename T>
  Error Next(T* value) {
    if (frame_->size() < sizeof(T)) {
      return MakeError(kRefused, "entropy: a frame whose head is cut short");
    }
    *value = LoadAs<T>(frame_->data());
    frame_->remove_prefix(sizeof(T));
    return {};
  }

 private:
  absl::Span<const uint8_t>* const frame_;
};

Error CheckNeighbours(int count) {
  if (count <= Neighbours::kMost) return {};
  return MakeError(kRefused, "entropy: %d neighbours, want at most %d", count, Neighbours::kMost);
}

// Sets the number of parts of the codes that the head has.
Error SetParts(uint16_t num_parts, EntropyHead* head) {
  const size_t num_rows = NumRows(head->count);
  head->layout.num_parts = num_parts;
  if (num_parts > 0 && num_parts <= num_rows) return {};
  return MakeError(kRefused, "entropy: %d parts of %zu rows, want 1 to %zu", num_parts, num_rows,
                   num_rows);
}

// Reads what follows kPartsForm: the number of neighbours, then that of stretches or, without
// neighbours, of parts.
Error ReadParts(Reader* reader, EntropyHead* head) {
  uint8_t num_neighbours = 0, stretches_log2 = 0;
  RETURN_ERROR(reader->Next(&num_neighbours));
  RETURN_ERROR(CheckNeighbours(num_neighbours));
  head->neighbours.count = num_neighbours;
  if (num_neighbours == 0) {
    uint16_t num_parts = 0;
    RETURN_ERROR(reader->Next(&num_parts));
    return SetParts(num_parts, head);
  }
  RETURN_ERROR(reader->Next(&stretches_log2));
  if (stretches_log2 > kStatesLog2) {
    return MakeError(kRefused, "entropy: 2^%d stretches, want at most %zu", stretches_log2,
                     kStates);
  }
  head->layout.width = kStates >> stretches_log2;
  return {};
}

Error ReadNeighbours(Reader* reader, EntropyHead* head) {
  uint32_t begin = 0, count = 0;
  uint16_t num_parts = 1;
  RETURN_ERROR(reader->Next(&begin));
  RETURN_ERROR(reader->Next(&count));
  head->begin = begin;
  head->count = count;
  if (head->begin + head->count > head->num_bytes) {
    return MakeError(kRefused, "entropy: codes up to byte %zu of %zu", head->begin + head->count,
                     head->num_bytes);
  }
  if (head->is_in_parts) RETURN_ERROR(reader->Next(&num_parts));
  RETURN_ERROR(SetParts(num_parts, head));
  RETURN_ERROR(reader->Next(&head->boundaries));
  if (head->boundaries & 1) return MakeError(kRefused, "entropy: a boundary before the first sum");
  for (int k = 0; k < head->neighbours.count; ++k) {
    RETURN_ERROR(reader->Next(&head->neighbours.rows[k]));
    if (head->neighbours.rows[k] == 0) {
      return MakeError(kRefused, "entropy: a neighbour 0 rows before a code");
    }
  }
  return {};
}

}  // namespace

EntropyHead HeadWithoutNeighbours(size_t num_bytes) {
  EntropyHead head;
  head.num_bytes = head.count = num_bytes;
  head.is_in_parts = num_bytes >= kLeastInParts;
  head.layout.num_parts = NumPartsOfCodes(num_bytes);
  return head;
}

uint8_t* WriteEntropyHead(const EntropyHead& head, uint8_t* to) {
  const auto write = [&to](auto value) {
    StoreAs(value, to);
    to += sizeof(value);
  };
  write(static_cast<uint32_t>(head.num_bytes));
  if (head.is_in_parts) write(kPartsForm);
  write(static_cast<uint8_t>(head.neighbours.count));
  const auto num_parts = static_cast<uint16_t>(head.layout.num_parts);
  if (!head.has_neighbours()) {
    if (head.is_in_parts) write(num_parts);
    return to;
  }
  if (head.is_in_parts) {
    uint8_t stretches_log2 = 0;
    while (head.layout.width << stretches_log2 < kStates) ++stretches_log2;
    write(stretches_log2);
  }
  write(static_cast<uint32_t>(head.begin));
  write(static_cast<uint32_t>(head.count));
  if (head.is_in_parts) write(num_parts);
  write(head.boundaries);
  for (int k = 0; k < head.neighbours.count; ++k) write(head.neighbours.rows[k]);
  return to;
}

Error ReadEntropyHead(absl::Span<const uint8_t>* frame, size_t most, EntropyHead* head) {
  Reader reader(frame);
  uint32_t num_bytes = 0;
  uint8_t num_neighbours = 0;
  *head = {};
  RETURN_ERROR(reader.Next(&num_bytes));
  head->num_bytes = head->count = num_bytes;
  if (head->num_bytes > most) {
    return MakeError(kRefused, "entropy: a frame of %u bytes, want at most %zu", num_bytes, most);
  }
  RETURN_ERROR(reader.Next(&num_neighbours));
  head->neighbours.count = num_neighbours;
  if (num_neighbours == kPairsForm) return {};
  head->is_in_parts = num_neighbours == kPartsForm;
  RETURN_ERROR(head->is_in_parts ? ReadParts(&reader, head) : CheckNeighbours(num_neighbours));
  return head->has_neighbours() ? ReadNeighbours(&reader, head) : Error{};
}

Frequencies CodesOfSums(const SumCounts& of_rows, size_t count) {
  Frequencies counts = {};
  for (const Frequencies& of_sum : of_rows) AddCounts(of_sum, &counts);
  counts[0] -= static_cast<uint32_t>(NumRows(count) * kStates - count);  // padding
  return counts;
}

double ChooseTables(const SumCounts& counts, EntropyHead* head, EntropyTables* tables) {
  if (head->has_neighbours()) head->boundaries = ChooseBoundaries(counts);
  std::array<Frequencies, kSums> of_context = {};
  for (int sum = 0; sum < kSums; ++sum) {
    AddCounts(counts[sum], &of_context[head->ContextOf(sum)]);
  }
  double bits = 0;
  size_t plain_bytes = head->head_bytes() + head->uncoded_bytes() + head->lengths_bytes();
  for (int t = 0; t < head->num_contexts(); ++t) {
    tables->of_context[t] = Scaled(of_context[t]);
    bits += CodedBits(of_context[t], tables->of_context[t]);
    plain_bytes += TableBytes(tables->of_context[t]);
  }
  for (int sum = 0; sum < kSums; ++sum) {
    tables->of_sum[sum] = tables->of_context[head->ContextOf(sum)];
  }
  return static_cast<double>(plain_bytes) + ExpectedRansBytes(bits, head->layout.num_parts);
}

uint8_t* WriteTables(const EntropyHead& head, const EntropyTables& tables, uint8_t* to) {
  for (int t = 0; t < head.num_contexts(); ++t) to = WriteTable(tables.of_context[t], to);
  return to;
}

Error ViewParts(size_t num_parts, absl::Span<const uint8_t> frame,
                std::vector<absl::Span<const uint8_t>>* parts) {
  const size_t lengths_bytes = num_parts * kPartLengthBytes;
  if (frame.size() < lengths_bytes) {
    return MakeError(kRefused, "entropy: lengths that are cut short");
  }
  const absl::Span<const uint8_t> lengths = frame.subspan(0, lengths_bytes);
  frame.remove_prefix(lengths_bytes);
  parts->clear();
  for (size_t at = 0; at < lengths_bytes; at += kPartLengthBytes) {
    const size_t length = LoadAs<uint32_t>(lengths.data() + at);
    if (length < kStatesBytes || length > frame.size()) {
      return MakeError(kRefused, "entropy: a part of %zu bytes, want %zu to %zu", length,
                       kStatesBytes, frame.size());
    }
    parts->push_back(frame.subspan(0, length));
    frame.remove_prefix(length);
  }
  return frame.empty() ? Error{} : MakeError(kRefused, "entropy: bytes behind the last part");
}

Error ViewEntropyFrame(const EntropyHead& head, absl::Span<const uint8_t> frame,
                       EntropyFrameView* view) {
  if (frame.size() < head.uncoded_bytes()) {
    return MakeError(kRefused, "entropy: uncoded bytes that are cut short");
  }
  view->uncoded = {frame.data(), head.uncoded_bytes()};
  frame.remove_prefix(head.uncoded_bytes());
  for (int t = 0; t < head.num_contexts(); ++t) {
    RETURN_ERROR(ReadTable(&frame, &view->of_context[t]));
  }
  for (int sum = 0; sum < kSums; ++sum) view->context_of_sum[sum] = head.ContextOf(sum);
  if (head.is_in_parts) return ViewParts(head.layout.num_parts, frame, &view->parts);
  if (frame.size() < kStatesBytes) return MakeError(kRefused, "entropy: states that are cut short");
  view->parts = {frame};
  return {};
}

}  // namespace thinwire
