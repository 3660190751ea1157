// Runs a kernel's blocks: a block's threads are fibers of one host thread.
#pragma once

#include <cstdint>
#include <functional>

#include "third_party/cuda_on_host/types.h"

// Where the running thread stands; as in CUDA. (With thread_local each use would first ask whether
// they are initialised.)
extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

namespace cuda_on_host {

constexpr int kWarp = 32;

// Calls `thread` once for each thread of each block, blocks in the order of their indices. Prints
// why and aborts when threads of a block wait for each other in vain. THINWIRE_EMULATED_ORDER:
// "forward" (the default), "reverse" or "shuffle", the order of threads between two barriers.
void RunGrid(dim3 grid, dim3 block, const std::function<void()>& thread);

// A place in a kernel where threads meet.
struct Site {
  const char* function;  // "__syncthreads"
  const char* file;
  int line;
};

// How many of the block's threads came with true; returns when all have come.
int MeetBlock(const Site& site, bool predicate);

// The values with which a warp's lanes came, and in `ballot` the lanes whose value was not 0.
// Valid until the thread's next meeting.
struct WarpValues {
  const uint64_t* of_lane;  // [32]
  uint32_t ballot;
};
WarpValues MeetWarp(const Site& site, uint32_t mask, uint64_t value);

}  // namespace cuda_on_host
