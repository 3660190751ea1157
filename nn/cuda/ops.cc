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

class CudaOps final : public Ops {
 public:
  CudaOps(CudaDevice* device, const OpsOptions& options)
      : device_(device),
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

  Error NormalizeBatch(const BatchNormForward& arguments) override {
    return cuda::NormalizeBatch(device_, arguments);
  }
  Error NormalizeBatchBackward(const BatchNormBackward& arguments) override {
    return cuda::NormalizeBatchBackward(device_, arguments);
  }

  Error NormalizeRows(const LayerNormForward& arguments) override {
    return cuda::NormalizeRows(device_, arguments);
  }
  Error NormalizeRowsBackward(const LayerNormBackward& arguments) override {
    return cuda::NormalizeRowsBackward(device_, arguments, &joined_.sums);
  }

  Error Embed(const Embedding& arguments) override { return cuda::Embed(device_, arguments); }
  Error EmbedBackward(const EmbeddingBackward& arguments) override {
    return cuda::EmbedBackward(device_, arguments);
  }
  Error CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) override {
    return cuda::CountPositions(device_, ids, pad, lengths);
  }
  Error TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) override {
    return cuda::TokenTypes(device_, ids, separator, types);
  }

  Error Relu(const TensorView& x, const TensorView& y) override {
    return cuda::Relu(device_, x, y);
  }
  Error ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) override {
    return cuda::ReluBackward(device_, y, dy, dx);
  }
  Error Apply(Pointwise function, const TensorView& x, const TensorView& y) override {
    return cuda::Apply(device_, function, x, y);
  }
  Error ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                      const TensorView& dx) override {
    return cuda::ApplyBackward(device_, function, x, dy, dx);
  }
  Error Drop(const Dropout& arguments) override { return cuda::Drop(device_, arguments); }
  Error Add(const TensorView& a, const TensorView& b, const TensorView& sum) override {
    return cuda::Add(device_, a, b, sum);
  }
  Error Convert(const TensorView& from, const TensorView& to) override {
    return cuda::Convert(device_, from, to);
  }

  Error Swiglu(const TensorView& x, const TensorView& y) override {
    return cuda::Swiglu(device_, x, y);
  }
  Error SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) override {
    return cuda::SwigluBackward(device_, x, dy, dx);
  }

  Error MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) override {
    return cuda::MaxPool(device_, spec, x, y);
  }
  Error MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                        const TensorView& dx) override {
    return cuda::MaxPoolBackward(device_, spec, x, dy, dx);
  }
  Error Maxout(int64_t group, const TensorView& x, const TensorView& y) override {
    return cuda::Maxout(device_, group, x, y);
  }
  Error MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                       const TensorView& dx) override {
    return cuda::MaxoutBackward(device_, group, x, dy, dx);
  }
  Error Resize(const TensorView& x, const TensorView& y) override {
    return cuda::Resize(device_, x, y);
  }
  Error Prepend(const float* row, const TensorView& x, const TensorView& y) override {
    return cuda::Prepend(device_, row, x, y);
  }
  Error PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) override {
    return cuda::PrependBackward(device_, dy, dx, drow);
  }
  Error GlobalAvgPool(const TensorView& x, const TensorView& y) override {
    return cuda::GlobalAvgPool(device_, x, y);
  }
  Error GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) override {
    return cuda::GlobalAvgPoolBackward(device_, dy, dx);
  }
  Error ToChannelsFirst(const TensorView& x, const TensorView& y) override {
    return cuda::ToChannelsFirst(device_, x, y);
  }
  Error ToChannelsLast(const TensorView& y, const TensorView& x) override {
    return cuda::ToChannelsLast(device_, y, x);
  }

  int64_t RowOfLogits(int64_t classes) override { return (classes + 63) / 64 * 64; }
  Error SoftmaxCrossEntropy(const CrossEntropy& arguments, LossSums* sums) override {
    return cuda::SoftmaxCrossEntropy(device_, arguments, sums);
  }

  Error Sgd(const SgdUpdate& arguments) override { return cuda::Sgd(device_, arguments); }
  Error AdamW(const AdamWUpdate& arguments) override { return cuda::AdamW(device_, arguments); }
  Error SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) override {
    return cuda::SumsOfSquares(device_, ranges, count, sums);
  }
  Error ClipByNorm(const NormClip& arguments) override {
    return cuda::ClipByNorm(device_, arguments);
  }
  Error Combine(const Combination& arguments) override { return cuda::Combine(device_, arguments); }
  Error Zero(float* values, int64_t n) override { return cuda::Zero(device_, values, n); }

  void JoinWeights() override { joined_.Join(); }
  Error FinishWeights() override { return joined_.Finish(); }
  Error NewWorkTimer(WorkTimer** timer) override { return cuda::NewWorkTimer(device_, timer); }

 private:
  CudaDevice* const device_;
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
