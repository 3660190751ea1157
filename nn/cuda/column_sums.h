// Adds sums over the rows of a matrix to gradients of parameters: of biases, scales of layer norms.
// A kernel has left them as sums of tiles (columns.cuh). To add up one matrix's tiles is little
// work for a launch, so between Join and Finish matrices are collected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

#include "tensor/cuda/device.h"

namespace thinwire::cuda {

// The sums of a matrix in memory: [tiles, sums, columns], fp64.
struct TileSumsShape {
  int64_t tiles = 0, sums = 1, columns = 0;

  size_t bytes() const { return static_cast<size_t>(tiles * sums * columns) * sizeof(double); }
};

// Adds for the layers of one Ops. Not thread-safe.
class ColumnSums {
 public:
  // Bytes of tiles' sums that may wait. Those of a pass of a large model would be a burden, as each
  // recorded pass keeps the memory in which they waited.
  static constexpr size_t kMostWaiting = size_t{8} << 20;

  explicit ColumnSums(CudaDevice* device) : device_(device) {}

  // Adds the k-th sums of the first `channels` columns to the k-th of `gradients`; null leaves them
  // out. If they are collected, that happens at Finish, or as soon as too much waits. The order of
  // a column's additions depends on `shape` alone.
  Error Add(const TileSumsShape& shape, std::unique_ptr<CudaScratch> tile_sums, int64_t channels,
            std::initializer_list<float*> gradients);

  // Collects from here on; forgets what was collected before.
  void Join();
  // Submits everything collected; nothing is collected any more.
  Error Finish();

 private:
  // One sum of each column.
  struct Waiting {
    const double* tile_sums;
    int64_t tiles, step, channels;  // step: elements from a tile's sums to the next tile's
    float* gradient;
  };

  Error Submit();

  CudaDevice* const device_;
  bool joins_ = false;
  std::vector<Waiting> waiting_;
  std::vector<std::unique_ptr<CudaScratch>> memory_;  // of `waiting_`
  size_t bytes_ = 0;                                  // of `memory_`
};

}  // namespace thinwire::cuda
