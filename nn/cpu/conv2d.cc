#include "nn/cpu/weighted.h"

namespace thinwire::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

class Conv2dKind final : public WeightedKind {
 public:
  Conv2dKind(OneDnn* onednn, const Conv2dSpec& spec) : onednn_(onednn), spec_(spec) {}

  const char* name() const override { return "conv2d"; }
  bool bias() const override { return spec_.bias; }
  Desc weights() const override { return Desc(WeightDims(), Type::f32, Tag::oihw); }

  dnnl::primitive_desc Forward(int64_t n) const override { return ForwardHint(n); }

  dnnl::primitive_desc BackwardData(int64_t n) const override {
    return Describe<dnnl::convolution_backward_data>(
        *onednn_,
        std::tuple(dnnl::algorithm::convolution_direct, X(n), AnyWeights(ComputeType()), Y(n),
                   Strides(), Padding(), Padding()),
        ForwardHint(n));
  }

  dnnl::primitive_desc BackwardWeights(int64_t n) const override {
    return Describe<dnnl::convolution_backward_weights>(
        *onednn_,
        std::tuple(dnnl::algorithm::convolution_direct, X(n), AnyWeights(Type::f32), Bias(), Y(n),
                   Strides(), Padding(), Padding()),
        ForwardHint(n));
  }

 private:
  dnnl::convolution_forward::primitive_desc ForwardHint(int64_t n) const {
    return Describe<dnnl::convolution_forward>(
        *onednn_,
        std::tuple(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, X(n),
                   AnyWeights(ComputeType()), Bias(), Y(n), Strides(), Padding(), Padding()));
  }

  int64_t Out(int64_t in) const {
    return (in + 2 * spec_.padding - spec_.kernel) / spec_.stride + 1;
  }
  Type ComputeType() const { return OneDnnType(spec_.compute); }
  dnnl::memory::dims WeightDims() const {
    return {spec_.out_channels, spec_.in_channels, spec_.kernel, spec_.kernel};
  }
  dnnl::memory::dims Strides() const { return {spec_.stride, spec_.stride}; }
  dnnl::memory::dims Padding() const { return {spec_.padding, spec_.padding}; }
  // Returns the layout that the fastest convolution prefers, with one exception. For AVX2, oneDNN
  // gathers the pixels that a stride leaves to a 1 x 1 kernel by registers of 8 channels, whatever
  // their number. So it writes past its scratchpad, into that of the next thread. Its convolutions
  // as products, which this layout selects, gather by channel.
  Desc AnyWeights(Type type) const {
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    const bool has_avx2_alone = isa == dnnl::cpu_isa::avx2 || isa == dnnl::cpu_isa::avx2_vnni;
    const bool is_gathered = spec_.kernel == 1 && spec_.stride > 1 && spec_.in_channels % 8 != 0;
    return Desc(WeightDims(), type, has_avx2_alone && is_gathered ? Tag::hwio : Tag::any);
  }
  // Returns a zero descriptor if there is no bias.
  Desc Bias() const { return spec_.bias ? Desc({spec_.out_channels}, Type::f32, Tag::a) : Desc(); }
  Desc X(int64_t n) const {
    return Desc({n, spec_.in_channels, spec_.height, spec_.width}, ComputeType(), Tag::nhwc);
  }
  Desc Y(int64_t n) const {
    return Desc({n, spec_.out_channels, Out(spec_.height), Out(spec_.width)}, ComputeType(),
                Tag::nhwc);
  }

  OneDnn* const onednn_;
  const Conv2dSpec spec_;
};

}  // namespace

std::unique_ptr<WeightedKind> NewConv2dKind(OneDnn* onednn, const Conv2dSpec& spec) {
  return std::make_unique<Conv2dKind>(onednn, spec);
}

}  // namespace thinwire::cpu
