// convolution.h for the emulator: the CPU's convolution on one thread, in fp32 whatever the compute
// type. bf16 is widened before and rounded after; weight gradients, too.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "nn/cpu/ops.h"
#include "nn/cuda/convolution.h"
#include "nn/cuda/host_work.h"

namespace thinwire::cuda {
namespace {

// The arithmetic, in host memory. It is shared with work that has not run yet.
class OnCpu {
 public:
  OnCpu(std::shared_ptr<Ops> ops, const Conv2dSpec& spec) : ops_(std::move(ops)), spec_(spec) {
    spec_.bias = false;
    Conv2dSpec fp32 = spec_;
    fp32.compute = DType::kF32;
    Conv2d* conv = nullptr;
    made_ = ops_->NewConv2d(fp32, &conv);
    conv_.reset(conv);
  }

  Error Forward(int64_t n, const void* x, const void* w, void* y) {
    RETURN_ERROR(made_);
    RETURN_ERROR(Read(x, X(n), &x_));
    RETURN_ERROR(LoadWeights(w));
    y_.resize(Y(n));
    RETURN_ERROR(conv_->Forward(ViewX(n), ViewY(n)));
    return Write(y_, y);
  }

  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) {
    RETURN_ERROR(made_);
    RETURN_ERROR(Read(dy, Y(n), &y_));
    RETURN_ERROR(LoadWeights(w));
    x_.resize(X(n));
    RETURN_ERROR(conv_->BackwardData(ViewY(n), ViewX(n)));
    return Write(x_, dx);
  }

  // Computes dw in the compute type, as cuDNN does.
  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw) {
    RETURN_ERROR(made_);
    RETURN_ERROR(Read(x, X(n), &x_));
    RETURN_ERROR(Read(dy, Y(n), &y_));
    weights_.assign(Weights(), 0.0f);
    RETURN_ERROR(conv_->BackwardWeights(ViewX(n), ViewY(n), weights_.data(), nullptr));
    std::vector<float> packed(weights_.size());
    ForEachWeight([&](int64_t to, int64_t plain) { packed[to] = weights_[plain]; });
    return Write(packed, dw);
  }

 private:
  int64_t X(int64_t n) const { return n * spec_.height * spec_.width * spec_.in_channels; }
  int64_t Y(int64_t n) const {
    return n * OutputExtent(spec_, spec_.height) * OutputExtent(spec_, spec_.width) *
           spec_.out_channels;
  }
  int64_t Weights() const {
    return spec_.out_channels * spec_.in_channels * spec_.kernel * spec_.kernel;
  }
  TensorView ViewX(int64_t n) const {
    return ViewOf(x_.data(), DType::kF32, {n, spec_.height, spec_.width, spec_.in_channels});
  }
  TensorView ViewY(int64_t n) const {
    return ViewOf(y_.data(), DType::kF32,
                  {n, OutputExtent(spec_, spec_.height), OutputExtent(spec_, spec_.width),
                   spec_.out_channels});
  }

  // Calls use(index in [out, pixels, in], index in [out, in, pixels]).
  template <typename Use>
  void ForEachWeight(const Use& use) const {
    const int64_t pixels = spec_.kernel * spec_.kernel;
    int64_t packed = 0;
    for (int64_t o = 0; o < spec_.out_channels; ++o) {
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t i = 0; i < spec_.in_channels; ++i, ++packed) {
          use(packed, (o * spec_.in_channels + i) * pixels + p);
        }
      }
    }
  }

  Error LoadWeights(const void* w) {
    std::vector<float> packed;
    RETURN_ERROR(Read(w, Weights(), &packed));
    weights_.resize(packed.size());
    ForEachWeight([&](int64_t from, int64_t plain) { weights_[plain] = packed[from]; });
    return conv_->LoadWeights(weights_.data(), nullptr);
  }

  Error Read(const void* from, int64_t n, std::vector<float>* values) {
    values->resize(static_cast<size_t>(n));
    return ops_->Convert(ViewOf(from, spec_.compute, {n}),
                         ViewOf(values->data(), DType::kF32, {n}));
  }
  Error Write(const std::vector<float>& values, void* to) {
    const auto n = static_cast<int64_t>(values.size());
    return ops_->Convert(ViewOf(values.data(), DType::kF32, {n}), ViewOf(to, spec_.compute, {n}));
  }

  const std::shared_ptr<Ops> ops_;  // must outlive conv_
  Conv2dSpec spec_;
  Error made_;
  std::unique_ptr<Conv2d> conv_;
  std::vector<float> x_, y_, weights_;
};

class EmulatedConvolution final : public Convolution {
 public:
  EmulatedConvolution(CudaDevice* device, std::shared_ptr<Ops> ops, const Conv2dSpec& spec)
      : device_(device),
        type_(spec.compute),
        work_(device),
        cpu_(std::make_shared<OnCpu>(std::move(ops), spec)) {}

  Error Forward(int64_t n, const void* x, const void* w, void* y) override {
    RETURN_ERROR(Prepare(n, &forward_));
    return work_.Submit([cpu = cpu_, n, x, w, y] { return cpu->Forward(n, x, w, y); });
  }
  Error BackwardData(int64_t n, const void* dy, const void* w, void* dx) override {
    RETURN_ERROR(Prepare(n, &backward_data_));
    return work_.Submit([cpu = cpu_, n, dy, w, dx] { return cpu->BackwardData(n, dy, w, dx); });
  }
  Error BackwardWeights(int64_t n, const void* x, const void* dy, void* dw, DType* type) override {
    RETURN_ERROR(Prepare(n, &backward_weights_));
    *type = type_;
    return work_.Submit([cpu = cpu_, n, x, dy, dw] { return cpu->BackwardWeights(n, x, dy, dw); });
  }

 private:
  // There is nothing to prepare, but what would fail on a GPU must fail here, too.
  Error Prepare(int64_t n, std::set<int64_t>* prepared) {
    if (prepared->count(n) > 0) return Error{};
    RETURN_ERROR(CheckMayPrepare(device_, "conv2d", n));
    prepared->insert(n);
    return Error{};
  }

  CudaDevice* const device_;
  const DType type_;
  HostWork work_;
  const std::shared_ptr<OnCpu> cpu_;
  std::set<int64_t> forward_, backward_data_, backward_weights_;  // batch sizes that are prepared
};

class EmulatedLibrary final : public ConvolutionLibrary {
 public:
  explicit EmulatedLibrary(CudaDevice* device) : device_(device), ops_(NewCpuOps(1)) {}

  std::shared_ptr<Convolution> New(const Conv2dSpec& spec) override {
    return std::make_shared<EmulatedConvolution>(device_, ops_, spec);
  }

 private:
  CudaDevice* const device_;
  const std::shared_ptr<Ops> ops_;
};

}  // namespace

std::unique_ptr<ConvolutionLibrary> NewConvolutionLibrary(CudaDevice* device, const OpsOptions&) {
  return std::make_unique<EmulatedLibrary>(device);
}

}  // namespace thinwire::cuda
