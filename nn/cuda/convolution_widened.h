// The weight gradient of a bf16 convolution where a library has none in fp32, as cuDNN 9.19 on
// Hopper.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "nn/cuda/convolution.h"
#include "nn/ops.h"
#include "tensor/cuda/device.h"

namespace thinwire::cuda {

using MakeConvolution =
    std::function<std::unique_ptr<Convolution>(const OpsOptions&, const Conv2dSpec&)>;

// make(options, spec); in bf16, one whose BackwardWeights, when Unimplemented, widens x and dy and
// computes in fp32: slow, but dw is never rounded to bf16. It may use TF32, in which products of
// bf16 are exact.
std::unique_ptr<Convolution> Widened(CudaDevice* device, const OpsOptions& options,
                                     const Conv2dSpec& spec, const MakeConvolution& make);

inline bool IsUnimplemented(const Error& error) {
  return error.code == static_cast<int32_t>(absl::StatusCode::kUnimplemented);
}

}  // namespace thinwire::cuda
