// 64-bit digests that name things (a batch's sample ids, a dataset, a tensor's bits): quick, the
// same on every machine, not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Equal sequences of calls give equal values. How a long input is split between calls matters.
class Digest {
 public:
  void Add(const void* bytes, size_t size);
  void AddWord(uint64_t word);
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x243F6A8885A308D3u;
};

}  // namespace thinwire
