#include <cassert>
#include <utility>

#include "nn/cuda/joined_work.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/weighted.h"
#include "tensor/cuda/error.h"

namespace thinwire::cuda {
namespace {

class PackedConv2d final : public Conv2d {
 public:
  PackedConv2d(CudaDevice* device, const Conv2dSpec& spec, std::shared_ptr<Convolution> convolution,
               JoinedWork* joined)
      : device_(device),
        spec_(spec),
        filter_{spec.out_channels, spec.in_channels, spec.kernel * spec.kernel},
        convolution_(std::move(convolution)),
        joined_(joined),
        packed_(device) {}

  Error ReserveWeights() {
    return packed_.Reserve(static_cast<size_t>(filter_.elements()) * SizeOf(spec_.compute));
  }

  Error LoadWeights(const float* weights, const float* bias) override {
    assert(spec_.bias == (bias != nullptr));
    bias_ = bias;
    return joined_->filters.Pack(filter_, weights, spec_.compute, packed_.as<void>());
  }

  // Filters of one pixel are packed as they are.
  NarrowCopies narrow_copies() const override {
    if (filter_.pixels > 1 || spec_.compute != DType::kBF16) return {};
    return {packed_.as<uint16_t>()};
  }

  // In bf16, y is rounded twice if there is a bias: before and after it is added.
  Error Forward(const TensorView& x, const TensorView& y) override {
    RETURN_ERROR(CheckAlignment(x.data, y.data));
    RETURN_ERROR(joined_->filters.FinishPacks());
    RETURN_ERROR(convolution_->Forward(x.dims[0], x.data, packed_.as<void>(), y.data));
    return spec_.bias ? AddBias(device_, bias_, y) : Error{};
  }

  Error BackwardData(const TensorView& dy, const TensorView& dx) override {
    RETURN_ERROR(CheckAlignment(dx.data, dy.data));
    RETURN_ERROR(joined_->filters.FinishPacks());
    return convolution_->BackwardData(dy.dims[0], dy.data, packed_.as<void>(), dx.data);
  }

  Error BackwardWeights(const TensorView& x, const TensorView& dy, float* weights_gradient,
                        float* bias_gradient) override {
    assert(spec_.bias == (bias_gradient != nullptr));
    RETURN_ERROR(CheckAlignment(x.data, dy.data));
    auto dw = std::make_unique<CudaScratch>(device_);
    RETURN_ERROR(dw->Reserve(static_cast<size_t>(filter_.elements()) * sizeof(float)));
    DType type = DType::kF32;
    RETURN_ERROR(convolution_->BackwardWeights(x.dims[0], x.data, dy.data, dw->as<void>(), &type));
    RETURN_ERROR(joined_->filters.AddGradient(filter_, std::move(dw), type, weights_gradient));
    return spec_.bias
               ? AddColumnSums(device_, dy, spec_.out_channels, &joined_->sums, bias_gradient)
               : Error{};
  }

 private:
  // Device::Allocate aligns its memory, but tensors from elsewhere may be aligned less.
  static Error CheckAlignment(const void* x, const void* y) {
    for (const void* data : {x, y}) {
      if (reinterpret_cast<uintptr_t>(data) % 16 == 0) continue;
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "conv2d: a tensor at %p, want it aligned to 16 bytes", data);
    }
    return Error{};
  }

  CudaDevice* const device_;
  const Conv2dSpec spec_;
  const FilterShape filter_;
  const std::shared_ptr<Convolution> convolution_;
  JoinedWork* const joined_;
  CudaScratch packed_;
  const float* bias_ = nullptr;
};

}  // namespace

Error NewConv2d(CudaDevice* device, const Conv2dSpec& spec,
                std::shared_ptr<Convolution> convolution, JoinedWork* joined, Conv2d** conv) {
  auto made = std::make_unique<PackedConv2d>(device, spec, std::move(convolution), joined);
  RETURN_ERROR(made->ReserveWeights());
  *conv = made.release();
  return Error{};
}

}  // namespace thinwire::cuda
