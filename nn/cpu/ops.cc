#include "nn/cpu/ops.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "nn/attention_checks.h"
#include "nn/checks.h"
#include "nn/clip_scale.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/onednn.h"
#include "nn/cpu/weighted.h"

namespace thinwire {
namespace {

class LinearOp final : public cpu::Weighted<Linear> {
 public:
  LinearOp(cpu::OneDnn* onednn, const LinearSpec& spec)
      : Weighted(onednn, cpu::NewLinearKind(onednn, spec)), threads_(onednn->threads) {}

  Error ForwardGelu(const TensorView& x, const TensorView& u, const TensorView& y) override {
    const TensorView& product = u.data != nullptr ? u : y;
    RETURN_ERROR(Forward(x, product));
    cpu::Apply(threads_, Pointwise::kTanhGelu, product, y);
    return Error{};
  }
  Error BackwardGelu(const TensorView& dy, const TensorView& u, const TensorView& du) override {
    RETURN_ERROR(BackwardData(dy, du));
    cpu::ApplyBackward(threads_, Pointwise::kTanhGelu, u, du, du);
    return Error{};
  }

 private:
  const int threads_;
};

// Makes the clip factor the gradients' scale. Returns false if it is NaN: then there is no update.
template <typename Update>
bool TakeFactor(Update* update) {
  if (update->clip_factor != nullptr) update->gradient_scale = *update->clip_factor;
  return update->clip_factor == nullptr || !std::isnan(*update->clip_factor);
}

// Writes the copies that an update wants.
template <typename Update>
void WriteNarrow(int threads, const Update& update) {
  for (int64_t i = 0; i < update.count; ++i) {
    const auto& parameter = update.parameters[i];
    if (parameter.narrow == nullptr) continue;
    cpu::Convert(threads, ViewOf(parameter.value, DType::kF32, {parameter.n}),
                 ViewOf(parameter.narrow, DType::kBF16, {parameter.n}));
  }
}

class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads) : onednn_(threads) {}

  Error CheckComputeType(DType compute) override {
    if (compute == DType::kF32) return Error{};
    if (compute != DType::kBF16) {
      return MakeError(absl::StatusCode::kInvalidArgument,
                       "cpu: compute type is %s, want fp32 or bf16", Name(compute));
    }
    const unsigned have = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
    const unsigned want = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
    if ((have & want) == want) return Error{};
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "cpu: bf16 needs AVX512-BF16 (avx512_core_bf16); oneDNN has %s here",
                     CpuInstructionSet());
  }

  Error NewConv2d(const Conv2dSpec& spec, Conv2d** conv) override {
    RETURN_ERROR(CheckComputeType(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    if (cpu::WinogradPays(spec)) {
      *conv = cpu::NewWinogradConv2d(&onednn_, spec).release();
    } else {
      *conv = new cpu::Weighted<Conv2d>(&onednn_, cpu::NewConv2dKind(&onednn_, spec));
    }
    return Error{};
  }

  Error NewLinear(const LinearSpec& spec, Linear** linear) override {
    RETURN_ERROR(CheckComputeType(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    *linear = new LinearOp(&onednn_, spec);
    return Error{};
  }

  Error NewAttention(const AttentionSpec& spec, Attention** attention) override {
    RETURN_ERROR(CheckComputeType(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    *attention = cpu::NewAttention(threads(), spec).release();
    return Error{};
  }

  Error NormalizeBatch(const BatchNormForward& arguments) override {
    return cpu::NormalizeBatch(threads(), arguments);
  }
  Error NormalizeBatchBackward(const BatchNormBackward& arguments) override {
    BatchNormBackward a = arguments;
    if (a.addend.data != nullptr) {
      cpu::Add(threads(), a.dy, a.addend, a.dresidual);
      a.dy = a.dresidual;  // of which each element is read before it is overwritten
    }
    return cpu::NormalizeBatchBackward(threads(), a);
  }

  Error NormalizeRows(const LayerNormForward& arguments) override {
    cpu::NormalizeRows(threads(), arguments);
    return Error{};
  }
  Error NormalizeRowsBackward(const LayerNormBackward& arguments) override {
    cpu::NormalizeRowsBackward(threads(), arguments);
    return Error{};
  }

  Error Embed(const Embedding& arguments) override { return cpu::Embed(threads(), arguments); }
  Error EmbedBackward(const EmbeddingBackward& arguments) override {
    return cpu::EmbedBackward(threads(), arguments);
  }
  Error CountPositions(const TensorView& ids, int32_t pad, int32_t* lengths) override {
    cpu::CountPositions(ids, pad, lengths);
    return Error{};
  }
  Error TokenTypes(const TensorView& ids, int32_t separator, const TensorView& types) override {
    cpu::TokenTypes(ids, separator, types);
    return Error{};
  }

  Error Relu(const TensorView& x, const TensorView& y) override {
    cpu::Relu(threads(), x, y);
    return Error{};
  }
  Error ReluBackward(const TensorView& y, const TensorView& dy, const TensorView& dx) override {
    cpu::ReluBackward(threads(), y, dy, dx);
    return Error{};
  }
  Error Apply(Pointwise function, const TensorView& x, const TensorView& y) override {
    cpu::Apply(threads(), function, x, y);
    return Error{};
  }
  Error ApplyBackward(Pointwise function, const TensorView& x, const TensorView& dy,
                      const TensorView& dx) override {
    cpu::ApplyBackward(threads(), function, x, dy, dx);
    return Error{};
  }
  Error Drop(const Dropout& arguments) override { return cpu::Drop(threads(), arguments); }
  Error Add(const TensorView& a, const TensorView& b, const TensorView& sum) override {
    assert(a.dtype == b.dtype && a.elements() == b.elements());
    cpu::Add(threads(), a, b, sum);
    return Error{};
  }
  Error Convert(const TensorView& from, const TensorView& to) override {
    assert(from.elements() == to.elements());
    cpu::Convert(threads(), from, to);
    return Error{};
  }

  Error Swiglu(const TensorView& x, const TensorView& y) override {
    cpu::Swiglu(threads(), x, y);
    return Error{};
  }
  Error SwigluBackward(const TensorView& x, const TensorView& dy, const TensorView& dx) override {
    cpu::SwigluBackward(threads(), x, dy, dx);
    return Error{};
  }

  Error MaxPool(const PoolSpec& spec, const TensorView& x, const TensorView& y) override {
    cpu::MaxPool(threads(), spec, x, y);
    return Error{};
  }
  Error MaxPoolBackward(const PoolSpec& spec, const TensorView& x, const TensorView& dy,
                        const TensorView& dx) override {
    cpu::MaxPoolBackward(threads(), spec, x, dy, dx);
    return Error{};
  }
  Error Maxout(int64_t group, const TensorView& x, const TensorView& y) override {
    cpu::Maxout(threads(), group, x, y);
    return Error{};
  }
  Error MaxoutBackward(int64_t group, const TensorView& x, const TensorView& dy,
                       const TensorView& dx) override {
    cpu::MaxoutBackward(threads(), group, x, dy, dx);
    return Error{};
  }
  Error Resize(const TensorView& x, const TensorView& y) override {
    cpu::Resize(threads(), x, y);
    return Error{};
  }
  Error Prepend(const float* row, const TensorView& x, const TensorView& y) override {
    cpu::Prepend(threads(), row, x, y);
    return Error{};
  }
  Error PrependBackward(const TensorView& dy, const TensorView& dx, float* drow) override {
    cpu::PrependBackward(threads(), dy, dx, drow);
    return Error{};
  }
  Error GlobalAvgPool(const TensorView& x, const TensorView& y) override {
    cpu::GlobalAvgPool(threads(), x, y);
    return Error{};
  }
  Error GlobalAvgPoolBackward(const TensorView& dy, const TensorView& dx) override {
    cpu::GlobalAvgPoolBackward(threads(), dy, dx);
    return Error{};
  }
  Error ToChannelsFirst(const TensorView& x, const TensorView& y) override {
    cpu::ToChannelsFirst(threads(), x, y);
    return Error{};
  }
  Error ToChannelsLast(const TensorView& y, const TensorView& x) override {
    cpu::ToChannelsLast(threads(), y, x);
    return Error{};
  }

  int64_t RowOfLogits(int64_t classes) override { return classes; }
  Error SoftmaxCrossEntropy(const CrossEntropy& arguments, LossSums* sums) override {
    *sums = cpu::SoftmaxCrossEntropy(threads(), arguments);
    return Error{};
  }

  Error Sgd(const SgdUpdate& arguments) override {
    SgdUpdate update = arguments;
    if (!TakeFactor(&update)) return Error{};
    cpu::Sgd(threads(), update);
    WriteNarrow(threads(), update);
    return Error{};
  }
  Error AdamW(const AdamWUpdate& arguments) override {
    AdamWUpdate update = arguments;
    if (!TakeFactor(&update)) return Error{};
    cpu::AdamW(threads(), update);
    WriteNarrow(threads(), update);
    return Error{};
  }
  Error SumsOfSquares(const FloatRange* ranges, int64_t count, double* sums) override {
    for (int64_t i = 0; i < count; ++i) {
      sums[i] = cpu::SumOfSquares(threads(), ranges[i].values, ranges[i].n);
    }
    return Error{};
  }
  Error ClipByNorm(const NormClip& arguments) override {
    RETURN_ERROR(SumsOfSquares(arguments.ranges, arguments.count, arguments.sums));
    double sum = 0;
    for (int64_t i = 0; i < arguments.count; ++i) sum += arguments.sums[i];
    *arguments.factor = std::isfinite(sum) ? static_cast<float>(ClipScale(sum, arguments.clip_norm))
                                           : std::numeric_limits<float>::quiet_NaN();
    return Error{};
  }
  Error Combine(const Combination& arguments) override {
    cpu::Combine(threads(), arguments);
    return Error{};
  }
  Error Zero(float* values, int64_t n) override {
    std::memset(values, 0, n * sizeof(float));
    return Error{};
  }

  void JoinWeights() override {}
  Error FinishWeights() override { return Error{}; }
  Error NewWorkTimer(WorkTimer** /*timer*/) override {
    return MakeError(absl::StatusCode::kUnimplemented, "cpu: a call's work ends with the call");
  }

 private:
  int threads() const { return onednn_.threads; }

  cpu::OneDnn onednn_;
};

}  // namespace

std::unique_ptr<Ops> NewCpuOps(int threads) {
  assert(threads >= 1);
  return std::make_unique<CpuOps>(threads);
}

const char* CpuInstructionSet() {
  constexpr std::string_view kPrefix = "cpu_isa_";
  const char* const name = dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  return std::string_view(name).substr(0, kPrefix.size()) == kPrefix ? name + kPrefix.size()
                                                                     : "unknown";
}

}  // namespace thinwire
