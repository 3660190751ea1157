#include "tensor/cuda/free_blocks.h"

#include <iterator>

namespace thinwire {

void FreeBlocks::AddChunk(void* memory, size_t bytes) {
  blocks_[static_cast<char*>(memory)] = {bytes, /*is_free=*/true, /*begins_chunk=*/true};
}

void* FreeBlocks::Take(size_t bytes) {
  bytes = RoundUp(bytes);
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (!block->second.is_free || block->second.bytes < bytes) continue;
    if (best == blocks_.end() || block->second.bytes < best->second.bytes) best = block;
  }
  if (best == blocks_.end()) return nullptr;
  const size_t left = best->second.bytes - bytes;
  if (left > 0) blocks_[best->first + bytes] = {left, /*is_free=*/true, /*begins_chunk=*/false};
  best->second.bytes = bytes;
  best->second.is_free = false;
  return best->first;
}

void FreeBlocks::Return(void* memory) {
  const auto block = blocks_.find(static_cast<char*>(memory));
  block->second.is_free = true;
  const auto next = std::next(block);
  if (next != blocks_.end() && next->second.is_free && !next->second.begins_chunk) {
    block->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (block->second.begins_chunk) return;
  const auto before = std::prev(block);
  if (!before->second.is_free) return;
  before->second.bytes += block->second.bytes;
  blocks_.erase(block);
}

}  // namespace thinwire
