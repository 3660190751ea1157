// convolution.h by cuDNN: the graph API first, the older calls for what that has no plan for.
#include "nn/cuda/convolution_cudnn.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "nn/cuda/convolution.h"
#include "nn/cuda/convolution_widened.h"
#include "nn/cuda/cudnn.h"

namespace thinwire::cuda {
namespace {

class EitherConvolution final : public Convolution {
 public:
  EitherConvolution(std::unique_ptr<Convolution> first, std::unique_ptr<Convolution> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    const Error error = first_->Forward(n, x, w, y);
    return IsUnimplemented(error) ? second_->Forward(n, x, w, y) : error;
  }
  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    const Error error = first_->BackwardData(n, dy, w, dx);
    return IsUnimplemented(error) ? second_->BackwardData(n, dy, w, dx) : error;
  }
  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw, DType* type) override {
    const Error error = first_->BackwardWeights(n, x, dy, dw, type);
    return IsUnimplemented(error) ? second_->BackwardWeights(n, x, dy, dw, type) : error;
  }

 private:
  const std::unique_ptr<Convolution> first_, second_;
};

class CudnnLibrary final : public ConvolutionLibrary {
 public:
  CudnnLibrary(CudaDevice* device, const OpsOptions& options) : cudnn_(device), options_(options) {}

  // Equal layers share a convolution, as preparing takes seconds if cuDNN compiles kernels or is
  // timed.
  std::shared_ptr<Convolution> New(const Conv2dSpec& spec) override {
    const auto either = [this](const OpsOptions& options, const Conv2dSpec& of) {
      return std::make_shared<EitherConvolution>(NewGraphConvolution(&cudnn_, options, of),
                                                 NewLegacyConvolution(&cudnn_, options, of));
    };
    std::shared_ptr<Convolution>& made =
        made_[{spec.in_channels, spec.out_channels, spec.height, spec.width, spec.kernel,
               spec.stride, spec.padding, static_cast<int64_t>(spec.compute)}];
    if (made == nullptr) made = Widened(cudnn_.device(), options_, spec, either);
    return made;
  }

 private:
  CudnnHandle cudnn_;
  const OpsOptions options_;
  std::map<std::array<int64_t, 8>, std::shared_ptr<Convolution>> made_;  // by spec
};

}  // namespace

std::unique_ptr<ConvolutionLibrary> NewConvolutionLibrary(CudaDevice* device,
                                                          const OpsOptions& options) {
  return std::make_unique<CudnnLibrary>(device, options);
}

}  // namespace thinwire::cuda
