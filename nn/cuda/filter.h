// Converts filters between the layout of parameters, [out, in, pixels] (PyTorch's), and
// channels-last, [out, pixels, in], in which convolution.h computes. One filter is little work for
// a launch, so between Join and Finish filters are collected.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tensor/cuda/device.h"
#include "tensor/dtype.h"

namespace thinwire::cuda {

struct FilterShape {
  int64_t out = 0, in = 0;
  int64_t pixels = 1;

  int64_t elements() const { return out * in * pixels; }
};

// Packs the weights of one Ops and adds up their gradients. Not thread-safe.
class Filters {
 public:
  explicit Filters(CudaDevice* device) : device_(device) {}

  // Writes `weights` channels-last to `packed`, of `type` (fp32 or bf16, rounded to nearest even).
  // If it is collected, that happens at FinishPacks, and both must stay until then.
  Error Pack(const FilterShape& shape, const float* weights, DType type, void* packed);
  // Adds `packed`, of `type`, to `gradient`, each in its layout. If it is collected, that happens
  // at Finish.
  Error AddGradient(const FilterShape& shape, std::unique_ptr<CudaScratch> packed, DType type,
                    float* gradient);

  // Collects both from here on; forgets what was collected before.
  void Join();
  // Submits the collected packs.
  Error FinishPacks();
  // Submits everything collected; nothing is collected any more.
  Error Finish();

 private:
  struct Filter {
    FilterShape shape;
    DType type;
    const void* from;
    void* to;
  };

  Error FinishGradients();

  CudaDevice* const device_;
  bool joins_ = false;
  std::vector<Filter> packs_, gradients_;
  std::vector<std::unique_ptr<CudaScratch>> memory_;  // of the collected gradients
};

}  // namespace thinwire::cuda
