// Lists of entries by blocks: each takes tiles of them, as many of which hold entries as a count in
// device memory says.
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
