// Device memory that has pages of its own, so that another process can open it.
#pragma once

#include <cstddef>

namespace cuda_on_host {

// Blocks of cudaMalloc of a multiple of this have pages of their own. CUDA, too, exports whole
// pages of this size.
constexpr size_t kPagesBytes = 2 << 20;

// Returns new pages for `bytes` bytes, a multiple of kPagesBytes, between two that nobody may
// touch; null if there are none.
void* NewPages(size_t bytes);
// Frees pages of NewPages. Processes that have opened them keep them.
void FreePages(void* pages, size_t bytes);

}  // namespace cuda_on_host
