#include <type_traits>
#include <utility>

#include "base/status.h"
#include "nn/layers/kinds.h"
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
        op_(std::move(op)),
        copies_(op_->narrow_copies()) {
    weight_->narrow = copies_.weights;
    if (bias_ != nullptr) bias_->narrow = copies_.bias;
  }

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(ExpandWeights());
    RETURN_IF_ERROR(ToStatus(op_->Forward(ViewFor<Op>(x), ViewFor<Op>(y))));
    if (pass.mode == Mode::kTrain) KeepInput(std::move(x), saved);
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    RETURN_IF_ERROR(WeightsNowOrLater(dy, saved));
    if (!needs_dx_) return Tensor();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewResult(in_, dy, saved->pass()));
    RETURN_IF_ERROR(ExpandWeights());
    RETURN_IF_ERROR(ToStatus(op_->BackwardData(ViewFor<Op>(dy), ViewFor<Op>(dx))));
    return dx;
  }

  // Computes gelu(y) instead of y, and in training keeps y besides x.
  absl::StatusOr<Tensor> ForwardGelu(Tensor x, const Pass& pass, Saved* saved) {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(ExpandWeights());
    if (pass.mode != Mode::kTrain) {
      RETURN_IF_ERROR(ToStatus(op_->ForwardGelu(RowsOf(x), TensorView(), RowsOf(y))));
      return y;
    }
    ASSIGN_OR_RETURN(Tensor u, context_.NewTensor(y.shape()));
    RETURN_IF_ERROR(ToStatus(op_->ForwardGelu(RowsOf(x), RowsOf(u), RowsOf(y))));
    KeepInput(std::move(x), saved);
    saved->Push(std::move(u));
    return y;
  }
  // Does what Backward does if x is gelu(u), and returns du. u is kept below x.
  absl::StatusOr<Tensor> BackwardGelu(Tensor dy, Saved* saved) {
    RETURN_IF_ERROR(WeightsNowOrLater(dy, saved));
    const Tensor u = saved->Pop();
    ASSIGN_OR_RETURN(Tensor du, context_.NewTensor(u.shape()));
    RETURN_IF_ERROR(ExpandWeights());
    RETURN_IF_ERROR(ToStatus(op_->BackwardGelu(RowsOf(dy), RowsOf(u), RowsOf(du))));
    return du;
  }

  absl::Status BackwardWeights(const Tensor& x, const Tensor& dy) override {
    return ToStatus(op_->BackwardWeights(ViewFor<Op>(x), ViewFor<Op>(dy), Floats(weight_->gradient),
                                         bias_ ? Floats(bias_->gradient) : nullptr));
  }

  absl::Status ParametersChanged(ChangedBy by) override {
    if (by == ChangedBy::kOptimizer && IsUpToDate(*weight_, copies_.weights) &&
        (bias_ == nullptr || IsUpToDate(*bias_, copies_.bias))) {
      return absl::OkStatus();
    }
    return ToStatus(op_->LoadWeights(weight_->is_coded() ? nullptr : Floats(weight_->value),
                                     bias_ ? Floats(bias_->value) : nullptr));
  }

 private:
  // Gives the operation weights that are held in few bits, before each product.
  absl::Status ExpandWeights() {
    if constexpr (std::is_same_v<Op, Linear>) {
      if (!weight_->is_coded()) return absl::OkStatus();
      ASSIGN_OR_RETURN(const void* const weights, context_.expanded->Of(*weight_));
      return ToStatus(op_->UseWeights(weights));
    }
    return absl::OkStatus();
  }
  // Returns whether `copy` of a parameter is right behind the optimizer's step, which writes it or
  // leaves the parameter as it is.
  static bool IsUpToDate(const Parameter& parameter, const uint16_t* copy) {
    const bool is_written = parameter.narrow_is_updated && parameter.narrow == copy;
    return is_written || !parameter.spec.is_trained();
  }
  bool is_trained() const { return weight_->spec.is_trained(); }
  // Keeps x for the weight's gradient.
  void KeepInput(Tensor x, Saved* saved) const {
    if (is_trained()) saved->Push(std::move(x));
  }
  absl::Status WeightsNowOrLater(const Tensor& dy, Saved* saved) {
    if (!is_trained()) return absl::OkStatus();
    Tensor x = saved->Pop();
    if (!context_.splits_backward) return BackwardWeights(x, dy);
    saved->Defer({this, std::move(x), dy});
    return absl::OkStatus();
  }

  const Shape in_, out_;
  const bool needs_dx_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;
  const std::unique_ptr<Op> op_;
  const NarrowCopies copies_;
};

using LinearLayer = WeightedLayer<Linear>;

// Two linear layers with GELU between, which is done in their products.
class GeluPairLayer final : public Layer {
 public:
  GeluPairLayer(std::unique_ptr<LinearLayer> first, std::unique_ptr<LinearLayer> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor between, first_->ForwardGelu(std::move(x), pass, saved));
    return second_->Forward(std::move(between), pass, saved);
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor du, second_->BackwardGelu(std::move(dy), saved));
    return first_->Backward(std::move(du), saved);
  }
  absl::Status ParametersChanged(ChangedBy by) override {
    RETURN_IF_ERROR(first_->ParametersChanged(by));
    return second_->ParametersChanged(by);
  }

 private:
  const std::unique_ptr<LinearLayer> first_, second_;
};

absl::StatusOr<std::unique_ptr<LinearLayer>> MakeLinear(const LayerSpec& spec, bool needs_dx,
                                                        bool makes_logits,
                                                        absl::Span<Parameter> parameters,
                                                        const LayerContext& context) {
  LinearSpec linear;
  linear.in_features = spec.in_features;
  linear.out_features = spec.out_features;
  linear.bias = spec.bias;
  linear.compute = context.compute;
  linear.borrows_weights = spec.format != WeightFormat::kFP32;
  if (makes_logits) linear.row = context.ops->RowOfLogits(spec.out_features);
  Linear* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewLinear(linear, &op)));
  const Shape out = spec.out.With(spec.out.rank() - 1, linear.row_of_y());
  return std::make_unique<LinearLayer>(spec, out, needs_dx, parameters, context,
                                       std::unique_ptr<Linear>(op));
}

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
  return MakeLinear(spec, needs_dx, makes_logits, parameters, context);
}

absl::StatusOr<std::unique_ptr<Layer>> NewGeluPairLayer(const LayerSpec& first,
                                                        const LayerSpec& second, bool needs_dx,
                                                        bool makes_logits,
                                                        absl::Span<Parameter> parameters,
                                                        const LayerContext& context) {
  ASSIGN_OR_RETURN(auto before,
                   MakeLinear(first, needs_dx, /*makes_logits=*/false, parameters, context));
  ASSIGN_OR_RETURN(auto behind,
                   MakeLinear(second, /*needs_dx=*/true, makes_logits, parameters, context));
  return std::make_unique<GeluPairLayer>(std::move(before), std::move(behind));
}

}  // namespace thinwire
