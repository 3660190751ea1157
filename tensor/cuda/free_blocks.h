// Finds room in chunks of memory by best fit. Knows addresses but never touches the memory.
#pragma once

#include <cstddef>
#include <map>

namespace thinwire {

class FreeBlocks {
 public:
  // Sizes are rounded up to multiples of kGrain. Blocks are aligned as their chunk is, up to
  // kGrain.
  static constexpr size_t kGrain = 512;

  static size_t RoundUp(size_t bytes) {
    return bytes == 0 ? kGrain : (bytes + kGrain - 1) / kGrain * kGrain;
  }

  // Adds a chunk; `bytes` is a multiple of kGrain. Chunks that happen to be neighbours are not
  // joined.
  void AddChunk(void* memory, size_t bytes);

  // Takes the smallest free block of at least `bytes`, the first of equal ones; null if there is
  // none.
  void* Take(size_t bytes);
  // Returns `memory`, which is from Take; it is joined with the free blocks beside it.
  void Return(void* memory);

 private:
  struct Block {
    size_t bytes = 0;
    bool is_free = true;
    bool begins_chunk = false;
  };

  std::map<char*, Block> blocks_;  // all blocks by address, without gaps inside a chunk
};

}  // namespace thinwire
