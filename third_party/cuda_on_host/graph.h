// Graphs: lists of work in the order in which it was captured.
#pragma once

#include <vector>

#include "third_party/cuda_on_host/queue.h"
#include "third_party/cuda_on_host/runtime_api.h"

namespace cuda_on_host {

// Makes a graph of `nodes`; cudaGraphDestroy frees it.
cudaGraph_t NewGraph(std::vector<Work> nodes);

}  // namespace cuda_on_host
