// Tiles of lists of entries: each block takes one tile after the other. A count in device memory
// says how many tiles hold entries.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace thinwire {

constexpr int kEntryThreads = 256;
constexpr int kEntriesEach = 8;  // neighbours of one thread
constexpr int kEntryTile = kEntryThreads * kEntriesEach;

__host__ __device__ inline int64_t NumEntryTiles(int64_t entries) {
  return (entries + kEntryTile - 1) / kEntryTile;
}

}  // namespace thinwire
