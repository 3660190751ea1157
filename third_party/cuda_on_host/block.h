// Runs a kernel's blocks: a block's threads are fibers of one host thread.
#pragma once

#include <cstdint>
#include <functional>

#include "third_party/cuda_on_host/types.h"

// Position of the running thread, as in CUDA. These are __thread, because each use of a
// thread_local would first ask whether it is initialised.
extern __thread uint3 threadIdx;
extern __thread uint3 blockIdx;
extern __thread dim3 blockDim;
extern __thread dim3 gridDim;

namespace cuda_on_host {

constexpr int kWarp = 32;

// Calls `thread` once for each thread of each block, blocks in the order of their indices. Prints
// the reason and aborts when threads of a block wait for each other in vain.
// THINWIRE_EMULATED_ORDER is the order in which threads run between two barriers: "forward" (the
// default), "reverse" or "shuffle".
void RunGrid(dim3 grid, dim3 block, const std::function<void()>& thread);

// Place in a kernel where threads meet.
struct Site {
  const char* function;  // "__syncthreads"
  const char* file;
  int line;
};

// Waits until all threads of the block have come. Returns how many came with `predicate` true.
int MeetBlock(const Site& site, bool predicate);

// Values with which a warp's lanes came; in `ballot`, a bit for each lane whose value was not 0.
// They stay valid until the thread's next meeting.
struct WarpValues {
  const uint64_t* of_lane;  // [32]
  uint32_t ballot;
};
// Waits until all lanes of the warp have come. Aborts for a `mask` that is not full.
WarpValues MeetWarp(const Site& site, uint32_t mask, uint64_t value);

}  // namespace cuda_on_host
