// Which ranges of a file are in use.
#pragma once

#include <cstdint>
#include <map>

namespace thinwire {

// Not thread-safe.
class Room {
 public:
  // Returns the begin of the first free range of that length, which is in use from then on. With
  // none inside, that is at end(), or at the free range before it, and end() grows.
  uint64_t Take(uint64_t length);
  // Frees a whole range that Take returned.
  void Free(uint64_t begin, uint64_t length);

  uint64_t end() const { return end_; }  // behind all ranges that were ever in use

 private:
  std::map<uint64_t, uint64_t> free_;  // length by begin; neighbours are joined
  uint64_t end_ = 0;
};

}  // namespace thinwire
