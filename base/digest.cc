#include "base/digest.h"

#include <cstring>

#include "base/random.h"

namespace thinwire {

void Digest::AddWord(uint64_t word) { state_ = RandomKey(state_, word); }

void Digest::Add(const void* bytes, size_t size) {
  const char* p = static_cast<const char*>(bytes);
  // Four lanes take a word each with one multiplication; they are mixed well at the end.
  uint64_t lanes[4] = {state_, state_ ^ 0x9E3779B97F4A7C15u, ~state_, state_ + size};
  size_t left = size;
  for (; left >= 32; left -= 32, p += 32) {
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, p + 8 * i, 8);
      lanes[i] = (lanes[i] ^ word) * 0x9FB21C651E98DF25u;
      lanes[i] ^= lanes[i] >> 32;
    }
  }
  for (uint64_t lane : lanes) AddWord(lane);
  for (; left > 0;) {
    const size_t take = left < 8 ? left : 8;
    uint64_t word = 0;
    std::memcpy(&word, p, take);
    AddWord(word);
    p += take;
    left -= take;
  }
  AddWord(size);
}

}  // namespace thinwire
