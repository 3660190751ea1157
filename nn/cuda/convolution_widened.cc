#include "nn/cuda/convolution_widened.h"

#include <utility>

#include "nn/cuda/kernels.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

class WidenedConvolution final : public Convolution {
 public:
  WidenedConvolution(CudaDevice* device, const Conv2dSpec& spec,
                     std::shared_ptr<Convolution> narrow, std::shared_ptr<Convolution> wide)
      : device_(device), spec_(spec), narrow_(std::move(narrow)), wide_(std::move(wide)) {}

  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    return narrow_->Forward(n, x, w, y);
  }
  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    return narrow_->BackwardData(n, dy, w, dx);
  }

  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw, DType* type) override {
    const Error error = narrow_->BackwardWeights(n, x, dy, dw, type);
    if (!IsUnimplemented(error)) return error;
    const int64_t pixels_out = OutputExtent(spec_, spec_.height) * OutputExtent(spec_, spec_.width);
    CudaScratch wide_x(device_), wide_dy(device_);
    RETURN_ERROR(Widen(x, n * spec_.height * spec_.width * spec_.in_channels, &wide_x));
    RETURN_ERROR(Widen(dy, n * pixels_out * spec_.out_channels, &wide_dy));
    return wide_->BackwardWeights(n, wide_x.as<float>(), wide_dy.as<float>(), dw, type);
  }

 private:
  Error Widen(const void* values, int64_t n, CudaScratch* wide) const {
    RETURN_ERROR(wide->Reserve(static_cast<size_t>(n) * sizeof(float)));
    return Convert(device_, ViewOf(values, spec_.compute, {n}),
                   ViewOf(wide->as<float>(), DType::kF32, {n}));
  }

  CudaDevice* const device_;
  const Conv2dSpec spec_;
  const std::shared_ptr<Convolution> narrow_, wide_;
};

}  // namespace

std::shared_ptr<Convolution> Widened(CudaDevice* device, const OpsOptions& options,
                                     const Conv2dSpec& spec, const MakeConvolution& make) {
  std::shared_ptr<Convolution> narrow = make(options, spec);
  if (spec.compute == DType::kF32) return narrow;
  OpsOptions tf32 = options;
  tf32.tf32 = true;
  Conv2dSpec fp32 = spec;
  fp32.compute = DType::kF32;
  return std::make_shared<WidenedConvolution>(device, spec, std::move(narrow), make(tf32, fp32));
}

}  // namespace thinwire::cuda
