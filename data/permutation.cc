#include "data/permutation.h"

#include <cassert>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace thinwire {
namespace {

// Four are indistinguishable from chance to who sees less than all; two more cost little.
constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(uint64_t key, int64_t size) : size_(size), key_(key) {
  assert(0 <= size && size <= int64_t{1} << 56);
  if (size > kMostListed) {
    while (int64_t{1} << (2 * half_bits_) < size) ++half_bits_;
    return;
  }
  listed_.resize(static_cast<size_t>(size));
  std::iota(listed_.begin(), listed_.end(), 0);
  RandomStream random(key);
  for (size_t i = listed_.size(); i > 1; --i) {  // Fisher-Yates
    std::swap(listed_[i - 1], listed_[random.Below(static_cast<uint32_t>(i))]);
  }
}

uint64_t Permutation::Encrypted(uint64_t number) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = number >> half_bits_, right = number & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t drawn = Philox(key_, round << half_bits_ | right)[0];
    left = std::exchange(right, left ^ (drawn & mask));
  }
  return left << half_bits_ | right;
}

// Numbers that are no items are permuted again until one is: at most four times as many numbers as
// items make that short.
int64_t Permutation::operator[](int64_t place) const {
  assert(0 <= place && place < size_);
  if (!listed_.empty()) return listed_[static_cast<size_t>(place)];
  auto number = static_cast<uint64_t>(place);
  do {
    number = Encrypted(number);
  } while (number >= static_cast<uint64_t>(size_));
  return static_cast<int64_t>(number);
}

}  // namespace thinwire
