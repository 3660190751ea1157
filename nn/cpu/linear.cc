#include "nn/cpu/weighted.h"

namespace thinwire::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

constexpr int64_t kLargeWeights = 1 << 16;
// With blocked weights, oneDNN's data gradient of a layer with so few inputs and so many outputs,
// as adapters are, ends in a segmentation fault on AVX-512 with two threads (8 to 2048, 64 rows).
constexpr int64_t kFewInputs = 64, kManyOutputs = 512;

class LinearKind final : public WeightedKind {
 public:
  LinearKind(OneDnn* onednn, const LinearSpec& spec) : onednn_(onednn), spec_(spec) {}

  const char* name() const override { return "linear"; }
  bool bias() const override { return spec_.bias; }
  Desc weights() const override {
    return Desc(WeightDims(), spec_.borrows_weights ? ComputeType() : Type::f32, Tag::ab);
  }

  dnnl::primitive_desc Forward(int64_t n) const override { return ForwardHint(n); }

  dnnl::primitive_desc BackwardData(int64_t n) const override {
    return Describe<dnnl::inner_product_backward_data>(
        *onednn_, std::tuple(X(n), Weights(ComputeType()), Y(n)), ForwardHint(n));
  }

  dnnl::primitive_desc BackwardWeights(int64_t n) const override {
    return Describe<dnnl::inner_product_backward_weights>(
        *onednn_, std::tuple(X(n), Weights(Type::f32), Bias(), Y(n)), ForwardHint(n));
  }

 private:
  dnnl::inner_product_forward::primitive_desc ForwardHint(int64_t n) const {
    return Describe<dnnl::inner_product_forward>(
        *onednn_,
        std::tuple(dnnl::prop_kind::forward_training, X(n), Weights(ComputeType()), Bias(), Y(n)));
  }

  Type ComputeType() const { return OneDnnType(spec_.compute); }
  dnnl::memory::dims WeightDims() const { return {spec_.out_features, spec_.in_features}; }
  // oneDNN 2.6 prefers blocked weights. For large matrices its GEMM on plain weights is faster (a
  // weight gradient takes half the time, tests/bench/ops_bench.cc) and needs no packed copy.
  // Borrowed weights are others in each pass, so that packing them never pays.
  Desc Weights(Type type) const {
    const bool faults = spec_.in_features < kFewInputs && spec_.out_features >= kManyOutputs;
    const bool is_large = spec_.in_features * spec_.out_features >= kLargeWeights;
    const bool is_plain = spec_.borrows_weights || faults || is_large;
    return Desc(WeightDims(), type, is_plain ? Tag::ab : Tag::any);
  }
  Desc Bias() const { return spec_.bias ? Desc({spec_.out_features}, Type::f32, Tag::a) : Desc(); }
  Desc X(int64_t n) const { return Desc({n, spec_.in_features}, ComputeType(), Tag::ab); }
  Desc Y(int64_t n) const { return Desc({n, spec_.out_features}, ComputeType(), Tag::ab); }

  OneDnn* const onednn_;
  const LinearSpec spec_;
};

}  // namespace

std::unique_ptr<WeightedKind> NewLinearKind(OneDnn* onednn, const LinearSpec& spec) {
  return std::make_unique<LinearKind>(onednn, spec);
}

}  // namespace thinwire::cpu
