#include "base/random.h"

namespace thinwire {
namespace {

// SplitMix64's finaliser: a bijection that spreads every input bit over the word.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t RandomKey(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a over the name, then mixed with the seed
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001B3u;
  return Mix(Mix(seed) ^ hash);
}

uint64_t RandomKey(uint64_t key, uint64_t a, uint64_t b) { return Mix(Mix(key ^ Mix(a)) + b); }

std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  std::array<uint32_t, 4> x = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               0, 0};
  // In each round the high halves of two products mix with the other words and the key; then the
  // key moves on. The constants are those of Philox.
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * x[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * x[2];
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return x;
}

uint32_t RandomStream::Next() {
  if (index_ % 4 == 0) block_ = Philox(key_, index_ / 4);
  return block_[index_++ % 4];
}

uint32_t RandomStream::Below(uint32_t bound) {
  // Lemire's method: the high word of the product is uniform once products with a small low word
  // are rejected. In 32 bits -bound % bound is 2^32 % bound.
  const uint32_t threshold = -bound % bound;
  for (;;) {
    const uint64_t product = uint64_t{Next()} * bound;
    if (static_cast<uint32_t>(product) >= threshold) return static_cast<uint32_t>(product >> 32);
  }
}

}  // namespace thinwire
