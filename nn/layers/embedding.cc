#include <utility>

#include "base/status.h"
#include "nn/layers/kinds.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                 const LayerContext& context)
      : out_(spec.out),
        context_(context),
        table_(FindParameter(parameters, spec.name + ".weight")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    Embedding a;
    a.ids = x.view();
    a.table = Floats(table_->value);
    a.vocabulary = table_->value.shape()[0];
    a.features = table_->value.shape()[1];
    a.y = y.view();
    RETURN_IF_ERROR(ToStatus(context_.ops->Embed(a)));
    if (pass.mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor ids = saved->Pop();
    EmbeddingBackward a;
    a.ids = ids.view();
    a.dy = dy.view();
    a.dtable = Floats(table_->gradient);
    a.vocabulary = table_->value.shape()[0];
    a.features = table_->value.shape()[1];
    RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(a)));
    return Tensor();
  }

 private:
  const Shape out_;
  const LayerContext context_;
  Parameter* const table_;
};

class PositionEmbeddingLayer final : public Layer {
 public:
  PositionEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                         const LayerContext& context)
      : context_(context), table_(FindParameter(parameters, spec.name + ".weight")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(Tensor y, context_.InPlaceOrNew(x));
    Embedding a;
    a.x = x.view();
    a.positions = Floats(table_->value);
    a.first_position = pass.first_position;
    a.features = table_->value.shape()[1];
    a.y = y.view();
    RETURN_IF_ERROR(ToStatus(context_.ops->Embed(a)));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    EmbeddingBackward a;
    a.dy = dy.view();
    a.features = table_->value.shape()[1];
    a.dpositions = Floats(table_->gradient) + saved->pass().first_position * a.features;
    RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(a)));
    return dy;
  }

 private:
  const LayerContext context_;
  Parameter* const table_;
};

}  // namespace

std::unique_ptr<Layer> NewEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                         const LayerContext& context) {
  return std::make_unique<EmbeddingLayer>(spec, parameters, context);
}

std::unique_ptr<Layer> NewPositionEmbeddingLayer(const LayerSpec& spec,
                                                 absl::Span<Parameter> parameters,
                                                 const LayerContext& context) {
  return std::make_unique<PositionEmbeddingLayer>(spec, parameters, context);
}

}  // namespace thinwire
