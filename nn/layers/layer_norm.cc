#include <utility>

#include "base/status.h"
#include "nn/layers/kinds.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class LayerNormLayer final : public Layer {
 public:
  LayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                 const LayerContext& context)
      : features_(spec.in_features),
        epsilon_(static_cast<float>(spec.epsilon)),
        centred_(spec.kind == LayerKind::kLayerNorm),
        context_(context),
        weight_(FindParameter(parameters, spec.name + ".weight")),
        bias_(centred_ && spec.bias ? FindParameter(parameters, spec.name + ".bias") : nullptr) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    const int64_t rows = x.elements() / features_;
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    // One row for rstd, one for the mean.
    ASSIGN_OR_RETURN(Tensor statistics,
                     Tensor::Allocate(context_.device, DType::kF32, {centred_ ? 2 : 1, rows}));
    LayerNormForward a;
    a.x = x.view();
    a.y = y.view();
    a.scale = Floats(weight_->value);
    a.bias = bias_ ? Floats(bias_->value) : nullptr;
    a.rstd = Floats(statistics);
    a.mean = centred_ ? Floats(statistics) + rows : nullptr;
    a.epsilon = epsilon_;
    a.centred = centred_;
    RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRows(a)));
    if (pass.mode == Mode::kTrain) {
      saved->Push(std::move(x));
      saved->Push(std::move(statistics));
    }
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor statistics = saved->Pop();
    const Tensor x = saved->Pop();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
    LayerNormBackward a;
    a.x = x.view();
    a.dy = dy.view();
    a.dx = dx.view();
    a.scale = Floats(weight_->value);
    a.rstd = Floats(statistics);
    a.mean = centred_ ? Floats(statistics) + statistics.shape()[1] : nullptr;
    a.dscale = Floats(weight_->gradient);
    a.dbias = bias_ ? Floats(bias_->gradient) : nullptr;
    a.centred = centred_;
    RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRowsBackward(a)));
    return dx;
  }

 private:
  const int64_t features_;
  const float epsilon_;
  const bool centred_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;  // null: no bias
};

}  // namespace

std::unique_ptr<Layer> NewLayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context) {
  return std::make_unique<LayerNormLayer>(spec, parameters, context);
}

}  // namespace thinwire
