#include "compress/entropy_layout.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/cpu/bytes.h"
#include "compress/frequencies.h"
#include "compress/pairs_layout.h"

namespace thinwire {
namespace {

absl::Status Refuse(const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("entropy: ", why));
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

absl::Status ReadNeighbours(Reader* reader, EntropyHead* head) {
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

}  // namespace

uint8_t* WriteEntropyHead(const EntropyHead& head, uint8_t* to) {
  const auto write = [&to](auto value) {
    StoreAs(value, to);
    to += sizeof(value);
  };
  write(static_cast<uint32_t>(head.num_bytes));
  write(static_cast<uint8_t>(head.neighbours.count));
  if (!head.has_neighbours()) return to;
  write(static_cast<uint32_t>(head.begin));
  write(static_cast<uint32_t>(head.count));
  write(head.boundaries);
  for (int k = 0; k < head.neighbours.count; ++k) write(head.neighbours.rows[k]);
  return to;
}

absl::StatusOr<EntropyHead> ReadEntropyHead(absl::Span<const uint8_t>* frame, size_t most) {
  Reader reader(frame);
  EntropyHead head;
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
  if (head.has_neighbours()) RETURN_IF_ERROR(ReadNeighbours(&reader, &head));
  return head;
}

bool ChooseTables(const SumCounts& counts, EntropyHead* head, EntropyTables* tables) {
  if (head->has_neighbours()) head->boundaries = ChooseBoundaries(counts);
  std::array<Frequencies, kSums> of_context = {};
  for (int sum = 0; sum < kSums; ++sum) {
    Frequencies& context = of_context[head->ContextOf(sum)];
    for (int s = 0; s < kSymbols; ++s) context[s] += counts[sum][s];
  }
  double bits = 0;
  for (int t = 0; t < head->num_contexts(); ++t) {
    tables->of_context[t] = Scaled(of_context[t]);
    bits += CodedBits(of_context[t], tables->of_context[t]);
  }
  for (int sum = 0; sum < kSums; ++sum) {
    tables->of_sum[sum] = tables->of_context[head->ContextOf(sum)];
  }
  // Within a few bytes.
  const double frame_bytes = bits / 8 + static_cast<double>(kStatesBytes + head->uncoded_bytes());
  return frame_bytes <= 1.02 * static_cast<double>(head->num_bytes);
}

uint8_t* WriteTables(const EntropyHead& head, const EntropyTables& tables, uint8_t* to) {
  for (int t = 0; t < head.num_contexts(); ++t) to = WriteTable(tables.of_context[t], to);
  return to;
}

absl::StatusOr<EntropyFrameView> ViewEntropyFrame(const EntropyHead& head,
                                                  absl::Span<const uint8_t> frame) {
  if (frame.size() < head.uncoded_bytes()) return Refuse("uncoded bytes that are cut short");
  EntropyFrameView view;
  view.uncoded = frame.subspan(0, head.uncoded_bytes());
  frame.remove_prefix(head.uncoded_bytes());
  for (int t = 0; t < head.num_contexts(); ++t) {
    ASSIGN_OR_RETURN(view.of_context[t], ReadTable(&frame));
  }
  if (frame.size() < kStatesBytes) return Refuse("states that are cut short");
  view.states = frame;
  for (int sum = 0; sum < kSums; ++sum) view.context_of_sum[sum] = head.ContextOf(sum);
  return view;
}

}  // namespace thinwire
