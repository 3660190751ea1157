#include "nn/layers/layer_norm.h"

#include <utility>

#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class LayerNormLayer final : public Layer {
 public:
  LayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                 const LayerContext& context)
      : features_(spec.in_features),
        context_(context),
        weight_(FindParameter(parameters, spec.name + ".weight")),
        bias_(FindParameter(parameters, spec.name + ".bias")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode mode, Saved* saved) override {
    const int64_t rows = x.elements() / features_;
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    // mean, rstd
    ASSIGN_OR_RETURN(Tensor statistics, Tensor::Allocate(context_.device, DType::kF32, {2, rows}));
    LayerNormForward a;
    a.x = x.view();
    a.y = y.view();
    a.scale = Floats(weight_->value);
    a.bias = Floats(bias_->value);
    a.mean = Floats(statistics);
    a.rstd = Floats(statistics) + rows;
    RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRows(a)));
    if (mode == Mode::kTrain) {
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
    a.mean = Floats(statistics);
    a.rstd = Floats(statistics) + statistics.shape()[1];
    a.dscale = Floats(weight_->gradient);
    a.dbias = Floats(bias_->gradient);
    RETURN_IF_ERROR(ToStatus(context_.ops->NormalizeRowsBackward(a)));
    return dx;
  }

 private:
  const int64_t features_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;
};

}  // namespace

std::unique_ptr<Layer> NewLayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context) {
  return std::make_unique<LayerNormLayer>(spec, parameters, context);
}

}  // namespace thinwire
