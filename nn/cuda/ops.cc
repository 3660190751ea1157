#include "nn/cuda/ops.h"

#include <memory>

#include "nn/attention_checks.h"
#include "nn/checks.h"
#include "nn/cuda/attention.h"
#include "nn/cuda/convolution.h"
#include "nn/cuda/fused_attention.h"
#include "nn/cuda/joined_work.h"
#include "nn/cuda/kernels.h"
#include "nn/cuda/matmul.h"
#include "nn/cuda/weighted.h"
#include "nn/cuda/work_timer.h"
#include "tensor/cuda/error.h"

namespace thinwire {
namespace {

Error CheckCompute(DType compute) {
  if (compute == DType::kF32 || compute == DType::kBF16) return Error{};
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "cuda: compute type is %s, want fp32 or bf16", Name(compute));
}

Error CheckRow(const LinearSpec& spec) {
  if (spec.row != 0 && spec.row < spec.out_features) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "linear: rows of %lld elements, want at least %lld",
                     static_cast<long long>(spec.row), static_cast<long long>(spec.out_features));
  }
  return Error{};
}

class CudaOps final : public cuda::Kernels {
 public:
  CudaOps(CudaDevice* device, const OpsOptions& options)
      : Kernels(device),
        convolutions_(cuda::NewConvolutionLibrary(device, options)),
        matmul_(cuda::NewMatmul(device, options)),
        attention_(cuda::NewFusedAttention(device, options)),
        joined_(device) {}

  // Every device that runs this code (compute capability 8.0 and later) computes in bf16.
  Error CheckComputeType(DType compute) override { return CheckCompute(compute); }

  Error NewConv2d(const Conv2dSpec& spec, Conv2d** conv) override {
    RETURN_ERROR(CheckCompute(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    return cuda::NewConv2d(device_, spec, convolutions_->New(spec), &joined_, conv);
  }
  Error NewLinear(const LinearSpec& spec, Linear** linear) override {
    RETURN_ERROR(CheckCompute(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    RETURN_ERROR(CheckRow(spec));
    return cuda::NewLinear(device_, spec, matmul_.get(), &joined_, linear);
  }
  Error NewAttention(const AttentionSpec& spec, Attention** attention) override {
    RETURN_ERROR(CheckCompute(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    return cuda::NewAttention(device_, spec, attention_.get(), attention);
  }

  Error NormalizeRowsBackward(const LayerNormBackward& arguments) override {
    return cuda::NormalizeRowsBackward(device_, arguments, &joined_.sums);
  }
  Error NormalizeHeadsBackward(const HeadNormBackward& arguments) override {
    return cuda::NormalizeHeadsBackward(device_, arguments, &joined_.sums);
  }

  Error Apply(Pointwise function, const TensorView& x, const TensorView& y) override {
    return cuda::Apply(device_, function, x, y);
  }
  Error ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                      const TensorView& dx) override {
    return cuda::ApplyBackward(device_, function, x, dy, dx);
  }
  Error Convert(const TensorView& from, const TensorView& to) override {
    return cuda::Convert(device_, from, to);
  }

  int64_t RowOfLogits(int64_t classes) override { return (classes + 63) / 64 * 64; }

  void JoinWeights() override { joined_.Join(); }
  Error FinishWeights() override { return joined_.Finish(); }
  Error NewWorkTimer(WorkTimer** timer) override { return cuda::NewWorkTimer(device_, timer); }

 private:
  const std::unique_ptr<cuda::ConvolutionLibrary> convolutions_;
  const std::unique_ptr<cuda::Matmul> matmul_;
  const std::unique_ptr<cuda::FusedAttention> attention_;  // null: no library
  cuda::JoinedWork joined_;
};

}  // namespace

Error NewCudaOps(CudaDevice* device, const OpsOptions& options, Ops** ops) {
  *ops = new CudaOps(device, options);
  return Error{};
}

}  // namespace thinwire
