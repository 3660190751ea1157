#include "third_party/cuda_on_host/graph.h"

#include <memory>
#include <utility>

#include "third_party/cuda_on_host/device.h"
#include "third_party/cuda_on_host/stream.h"

struct CUgraphNode_st {
  cuda_on_host::Work work;
};

struct CUgraph_st {
  std::vector<CUgraphNode_st> nodes;
};

struct CUgraphExec_st {
  std::vector<cuda_on_host::Work> nodes;
};

namespace cuda_on_host {

cudaGraph_t NewGraph(std::vector<Work> nodes) {
  auto* graph = new CUgraph_st;
  for (Work& work : nodes) graph->nodes.push_back({std::move(work)});
  return graph;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (graph == nullptr || count == nullptr) return Noted(cudaErrorInvalidValue);
  const size_t room = nodes == nullptr ? 0 : *count;
  for (size_t i = 0; i < room; ++i) {
    nodes[i] = i < graph->nodes.size() ? &graph->nodes[i] : nullptr;
  }
  if (nodes == nullptr || graph->nodes.size() < room) *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (node == nullptr) return Noted(cudaErrorInvalidValue);
  *type = node->work.type;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (graph == nullptr) return Noted(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  if (graph == nullptr) return Noted(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st;
  for (const CUgraphNode_st& node : graph->nodes) (*executable)->nodes.push_back(node.work);
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
