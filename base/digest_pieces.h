// An input of a digest that comes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/digest.h"

namespace thinwire {

// Gives the digest the value that Digest::Add gives it for all pieces at once.
class DigestPieces {
 public:
  // Pieces of all but the last have a multiple of so many bytes.
  static constexpr size_t kBlockBytes = 32;

  // `digest`, which outlives this, is used by nobody else until `size` bytes were added.
  DigestPieces(Digest* digest, size_t size);

  // Adds a piece. One of no bytes ends an input of none.
  void Add(const void* bytes, size_t size);

 private:
  static constexpr int kLanes = 4;

  Digest* const digest_;
  const size_t size_;
  size_t left_;
  uint64_t lanes_[kLanes];
};

}  // namespace thinwire
