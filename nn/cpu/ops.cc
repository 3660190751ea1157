#include "nn/cpu/ops.h"

#include <oneapi/dnnl/dnnl_debug.h>

#include <cassert>
#include <cstring>
#include <memory>
#include <string_view>

#include "nn/attention_checks.h"
#include "nn/checks.h"
#include "nn/cpu/kernels.h"
#include "nn/cpu/onednn.h"
#include "nn/cpu/weighted.h"

namespace thinwire {
namespace {

class LinearOp final : public cpu::Weighted<Linear> {
 public:
  LinearOp(cpu::OneDnn* onednn, const LinearSpec& spec, Ops* ops)
      : Weighted(onednn, cpu::NewLinearKind(onednn, spec)), ops_(ops) {}

  Error UseWeights(const void* weights) override {
    Borrow(weights);
    return Error{};
  }

  Error ForwardGelu(const TensorView& x, const TensorView& u, const TensorView& y) override {
    const TensorView& product = u.data != nullptr ? u : y;
    RETURN_ERROR(Forward(x, product));
    return ops_->Apply(Pointwise::kTanhGelu, product, y);
  }
  Error BackwardGelu(const TensorView& dy, const TensorView& u, const TensorView& du) override {
    RETURN_ERROR(BackwardData(dy, du));
    return ops_->ApplyBackward(Pointwise::kTanhGelu, u, du, du);
  }

 private:
  Ops* const ops_;
};

class CpuOps final : public cpu::Kernels {
 public:
  explicit CpuOps(int threads) : Kernels(threads), onednn_(threads) {}

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
    *linear = new LinearOp(&onednn_, spec, this);
    return Error{};
  }

  Error NewAttention(const AttentionSpec& spec, Attention** attention) override {
    RETURN_ERROR(CheckComputeType(spec.compute));
    RETURN_ERROR(CheckSpec(spec));
    *attention = cpu::NewAttention(onednn_.threads, spec).release();
    return Error{};
  }

  int64_t RowOfLogits(int64_t classes) override { return classes; }
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
