#include "base/digest.h"

#include "base/digest_pieces.h"
#include "base/random.h"

namespace thinwire {

void Digest::AddWord(uint64_t word) { state_ = RandomKey(state_, word); }

void Digest::Add(const void* bytes, size_t size) { DigestPieces(this, size).Add(bytes, size); }

}  // namespace thinwire
