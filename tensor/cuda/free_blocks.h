// Where in some chunks of memory there is room: best fit. Knows addresses, touches none.
#pragma once

#include <cstddef>
#include <map>

namespace thinwire {

class FreeBlocks {
 public:
  // Sizes are rounded up to multiples of it, and blocks aligned as their chunk is, up to it.
  static constexpr size_t kGrain = 512;

  static size_t RoundUp(size_t bytes) {
    return bytes == 0 ? kGrain : (bytes + kGrain - 1) / kGrain * kGrain;
  }

  // `bytes` is a multiple of kGrain. Chunks that happen to be neighbours stay two.
  void AddChunk(void* memory, size_t bytes);

  // The least free block of at least `bytes`, the first of equal ones; null if there is none.
  void* Take(size_t bytes);
  // `memory` is from Take; it is joined with the free blocks beside it.
  void Return(void* memory);

 private:
  struct Block {
    size_t bytes = 0;
    bool is_free = true;
    bool begins_chunk = false;
  };

  std::map<char*, Block> blocks_;  // by address: all that there is, without gaps inside a chunk
};

}  // namespace thinwire
