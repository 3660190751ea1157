// 64-bit digests that identify things (a batch's sample ids, a dataset, a tensor's bits): fast, the
// same on every machine, not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thinwire {

// Equal sequences of calls give equal values. Dividing an input differently among calls changes the
// value.
class Digest {
 public:
  void Add(const void* bytes, size_t size);
  void AddWord(uint64_t word);
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0x243F6A8885A308D3u;
};

}  // namespace thinwire
