#include "stage_server/boundary/sequence_starts.h"

#include <numeric>

#include "wire/message_kind.h"

namespace thinwire {
namespace {

// Returns the index of the slice that a message has; 0 if it has whole samples.
size_t SliceOf(const BoundarySpec& spec, const MessageKey& key) {
  if (!IsTrainingPass(key.phase) || spec.slice_positions.empty()) return 0;
  return key.microbatch % spec.slice_positions.size();
}

}  // namespace

bool BeginsSequences(const BoundarySpec& spec, const MessageKey& key, int64_t first_position) {
  return first_position == 0 && SliceOf(spec, key) == 0;
}

std::vector<uint32_t> DocumentRowsOf(const BoundarySpec& spec, const MessageKey& key,
                                     const Shape& shape, absl::Span<const uint32_t> documents) {
  std::vector<uint32_t> rows;
  if (documents.empty()) return rows;
  const auto slices = spec.slice_positions.begin();
  const int64_t first = std::accumulate(slices, slices + SliceOf(spec, key), int64_t{0});
  const int64_t whole = spec.sample[1], positions = shape[1];
  for (const uint32_t start : documents) {
    const int64_t sample = start / whole, position = start % whole - first;
    if (position < 0 || position >= positions) continue;
    rows.push_back(static_cast<uint32_t>(sample * positions + position));
  }
  return rows;
}

}  // namespace thinwire
