#include "third_party/cuda_on_host/graph.h"

#include <memory>
#include <utility>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/stream.h"

struct CUgraph_st {
  std::vector<cuda_on_host::Work> nodes;
};

struct CUgraphExec_st {
  std::vector<cuda_on_host::Work> nodes;
};

namespace cuda_on_host {

cudaGraph_t NewGraph(std::vector<Work> nodes) { return new CUgraph_st{std::move(nodes)}; }

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return Noted(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (graph == nullptr) return Noted(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t) {
  return Noted(executable == nullptr ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (executable == nullptr) return Noted(cudaErrorInvalidValue);
  for (const Work& work : executable->nodes) {
    if (const cudaError_t error = Submit(stream, work); error != cudaSuccess) return Noted(error);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (executable == nullptr) return Noted(cudaErrorInvalidValue);
  delete executable;
  return cudaSuccess;
}
