#include "stage_server/swap/room.h"

#include <iterator>

namespace thinwire {

uint64_t Room::Take(uint64_t length) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const auto [begin, free] = *range;
    const bool is_last = begin + free == end_;
    if (free < length && !is_last) continue;
    free_.erase(range);
    if (free > length) free_[begin + length] = free - length;
    if (free < length) end_ = begin + length;
    return begin;
  }
  const uint64_t begin = end_;
  end_ += length;
  return begin;
}

void Room::Free(uint64_t begin, uint64_t length) {
  auto after = free_.upper_bound(begin);
  if (after != free_.end() && after->first == begin + length) {
    length += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += length;
      return;
    }
  }
  free_[begin] = length;
}

}  // namespace thinwire
