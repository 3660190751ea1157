#include "base/digest_pieces.h"

#include <cassert>
#include <cstring>

namespace thinwire {

// Four lanes take a word each with one multiplication; they are mixed well at the end.
DigestPieces::DigestPieces(Digest* digest, size_t size)
    : digest_(digest), size_(size), left_(size) {
  const uint64_t state = digest->value();
  lanes_[0] = state;
  lanes_[1] = state ^ 0x9E3779B97F4A7C15u;
  lanes_[2] = ~state;
  lanes_[3] = state + size;
}

void DigestPieces::Add(const void* bytes, size_t size) {
  assert(size <= left_ && (size == left_ || size % kBlockBytes == 0));
  const char* p = static_cast<const char*>(bytes);
  left_ -= size;
  for (; size >= kBlockBytes; size -= kBlockBytes, p += kBlockBytes) {
    for (int i = 0; i < kLanes; ++i) {
      uint64_t word;
      std::memcpy(&word, p + 8 * i, 8);
      lanes_[i] = (lanes_[i] ^ word) * 0x9FB21C651E98DF25u;
      lanes_[i] ^= lanes_[i] >> 32;
    }
  }
  if (left_ > 0) return;
  for (const uint64_t lane : lanes_) digest_->AddWord(lane);
  while (size > 0) {
    const size_t take = size < 8 ? size : 8;
    uint64_t word = 0;
    std::memcpy(&word, p, take);
    digest_->AddWord(word);
    p += take;
    size -= take;
  }
  digest_->AddWord(size_);
}

}  // namespace thinwire
