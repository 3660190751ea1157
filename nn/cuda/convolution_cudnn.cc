// cuDNN's twin of convolution.h: the graph API first, the older calls for what it does not plan.
#include <utility>

#include "nn/cuda/convolution.h"
#include "nn/cuda/convolution_graph.h"
#include "nn/cuda/convolution_legacy.h"
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
  Error BackwardWeights(int64_t n, const void* x, const void* dy, float* dw) override {
    const Error error = first_->BackwardWeights(n, x, dy, dw);
    return IsUnimplemented(error) ? second_->BackwardWeights(n, x, dy, dw) : error;
  }

 private:
  const std::unique_ptr<Convolution> first_, second_;
};

class CudnnLibrary final : public ConvolutionLibrary {
 public:
  CudnnLibrary(CudaDevice* device, const OpsOptions& options) : cudnn_(device), options_(options) {}

  std::unique_ptr<Convolution> New(const Conv2dSpec& spec) override {
    const auto either = [this](const OpsOptions& options, const Conv2dSpec& of) {
      return std::make_unique<EitherConvolution>(NewGraphConvolution(&cudnn_, options, of),
                                                 NewLegacyConvolution(&cudnn_, options, of));
    };
    return Widened(cudnn_.device(), options_, spec, either);
  }

 private:
  CudnnHandle cudnn_;
  const OpsOptions options_;
};

}  // namespace

std::unique_ptr<ConvolutionLibrary> NewConvolutionLibrary(CudaDevice* device,
                                                          const OpsOptions& options) {
  return std::make_unique<CudnnLibrary>(device, options);
}

}  // namespace thinwire::cuda
