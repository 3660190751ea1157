// Filters between the layout of parameters, [out, in, pixels] (PyTorch's), and channels-last,
// [out, pixels, in], in which convolution.h computes. A filter is little work for a launch: between
// Join and Finish they wait for one another.
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

// Packs the weights of one Ops and adds up their gradients. One thread at a time.
class Filters {
 public:
  explicit Filters(CudaDevice* device) : device_(device) {}

  // packed, of `type` (fp32 or bf16, rounded to nearest even), becomes `weights` channels-last;
  // where it waits, at FinishPacks, until when both stay.
  Error Pack(const FilterShape& shape, const float* weights, DType type, void* packed);
  // gradient += packed, of `type`, each in its layout; where it waits, at Finish.
  Error AddGradient(const FilterShape& shape, std::unique_ptr<CudaScratch> packed, DType type,
                    float* gradient);

  // Lets both wait from here on; forgets what waited.
  void Join();
  // Submits what Pack has left to do.
  Error FinishPacks();
  // Submits all else too; nothing waits any more.
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
  std::vector<std::unique_ptr<CudaScratch>> memory_;  // of the gradients that wait
};

}  // namespace thinwire::cuda
