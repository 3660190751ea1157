#include <type_traits>
#include <utility>

#include "base/status.h"
#include "nn/layers/kinds.h"
#include "nn/layers/rows.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

// Returns the tensor as Op sees it.
template <typename Op>
TensorView ViewFor(const Tensor& tensor) {
  return std::is_same_v<Op, Linear> ? RowsOf(tensor) : tensor.view();
}

// A layer around Op, which is Conv2d or Linear.
template <typename Op>
class WeightedLayer final : public Layer {
 public:
  // `out` is the shape of a whole sample's result in memory.
  WeightedLayer(const LayerSpec& spec, const Shape& out, bool needs_dx,
                absl::Span<Parameter> parameters, const LayerContext& context,
                std::unique_ptr<Op> op)
      : in_(spec.in),
        out_(out),
        needs_dx_(needs_dx),
        context_(context),
        weight_(FindParameter(parameters, spec.name + ".weight")),
        bias_(spec.bias ? FindParameter(parameters, spec.name + ".bias") : nullptr),
        op_(std::move(op)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(ToStatus(op_->Forward(ViewFor<Op>(x), ViewFor<Op>(y))));
    if (pass.mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    Tensor x = saved->Pop();
    if (context_.splits_backward) {
      saved->Defer({this, std::move(x), dy});
    } else {
      RETURN_IF_ERROR(BackwardWeights(x, dy));
    }
    x = Tensor();
    if (!needs_dx_) return Tensor();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewResult(in_, dy, saved->pass()));
    RETURN_IF_ERROR(ToStatus(op_->BackwardData(ViewFor<Op>(dy), ViewFor<Op>(dx))));
    return dx;
  }

  absl::Status BackwardWeights(const Tensor& x, const Tensor& dy) override {
    return ToStatus(op_->BackwardWeights(ViewFor<Op>(x), ViewFor<Op>(dy), Floats(weight_->gradient),
                                         bias_ ? Floats(bias_->gradient) : nullptr));
  }

  absl::Status ParametersChanged() override {
    return ToStatus(
        op_->LoadWeights(Floats(weight_->value), bias_ ? Floats(bias_->value) : nullptr));
  }

 private:
  const Shape in_, out_;
  const bool needs_dx_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;
  const std::unique_ptr<Op> op_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewConv2dLayer(const LayerSpec& spec, bool needs_dx,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context) {
  Conv2dSpec conv;
  conv.in_channels = spec.in_features;
  conv.out_channels = spec.out_features;
  conv.height = spec.in[1];
  conv.width = spec.in[2];
  conv.kernel = spec.kernel;
  conv.stride = spec.stride;
  conv.padding = spec.padding;
  conv.bias = spec.bias;
  conv.compute = context.compute;
  Conv2d* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewConv2d(conv, &op)));
  return std::make_unique<WeightedLayer<Conv2d>>(spec, spec.out, needs_dx, parameters, context,
                                                 std::unique_ptr<Conv2d>(op));
}

absl::StatusOr<std::unique_ptr<Layer>> NewLinearLayer(const LayerSpec& spec, bool needs_dx,
                                                      bool makes_logits,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context) {
  LinearSpec linear;
  linear.in_features = spec.in_features;
  linear.out_features = spec.out_features;
  linear.bias = spec.bias;
  linear.compute = context.compute;
  if (makes_logits) linear.row = context.ops->RowOfLogits(spec.out_features);
  Linear* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewLinear(linear, &op)));
  const Shape out = spec.out.With(spec.out.rank() - 1, linear.row_of_y());
  return std::make_unique<WeightedLayer<Linear>>(spec, out, needs_dx, parameters, context,
                                                 std::unique_ptr<Linear>(op));
}

}  // namespace thinwire
