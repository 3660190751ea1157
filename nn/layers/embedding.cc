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
      : features_(spec.out_features),
        context_(context),
        table_(FindParameter(parameters, Parameters(spec).front().name)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(Tensor y, context_.InPlaceOrNew(x));
    Embedding a;
    a.x = x.view();
    a.positions = Floats(table_->value);
    a.first_position = pass.first_position;
    a.features = features_;
    a.y = y.view();
    RETURN_IF_ERROR(ToStatus(context_.ops->Embed(a)));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    EmbeddingBackward a;
    a.dy = dy.view();
    a.features = features_;
    a.dpositions = Floats(table_->gradient) + saved->pass().first_position * a.features;
    RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(a)));
    return dy;
  }

 private:
  const int64_t features_;
  const LayerContext context_;
  Parameter* const table_;
};

class TypeEmbeddingLayer final : public Layer {
 public:
  TypeEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                     const LayerContext& context)
      : separator_(spec.separator),
        context_(context),
        table_(FindParameter(parameters, spec.name + ".weight")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(const Tensor types, TypesOf(x.shape(), pass));
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    Embedding a;
    a.ids = types.view();
    a.table = Floats(table_->value);
    a.vocabulary = table_->value.shape()[0];
    a.features = table_->value.shape()[1];
    a.y = y.view();
    RETURN_IF_ERROR(ToStatus(context_.ops->Embed(a)));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(x.view(), y.view(), y.view())));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    ASSIGN_OR_RETURN(const Tensor types, TypesOf(dy.shape(), saved->pass()));
    EmbeddingBackward a;
    a.ids = types.view();
    a.dy = dy.view();
    a.dtable = Floats(table_->gradient);
    a.vocabulary = table_->value.shape()[0];
    a.features = table_->value.shape()[1];
    RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(a)));
    return dy;
  }

 private:
  // Returns the types of the positions of a tensor of this shape.
  absl::StatusOr<Tensor> TypesOf(const Shape& shape, const Pass& pass) const {
    ASSIGN_OR_RETURN(Tensor types,
                     Tensor::Allocate(context_.device, DType::kI32, {shape[0], shape[1]}));
    if (separator_ == kNoId) {
      // Zero's bits are those of the type 0.
      RETURN_IF_ERROR(
          ToStatus(context_.ops->Zero(static_cast<float*>(types.data()), types.elements())));
      return types;
    }
    RETURN_IF_ERROR(pass.CheckIds(shape));
    RETURN_IF_ERROR(ToStatus(
        context_.ops->TokenTypes(pass.ids.view(), static_cast<int32_t>(separator_), types.view())));
    return types;
  }

  const int64_t separator_;
  const LayerContext context_;
  Parameter* const table_;
};

class ClassTokenLayer final : public Layer {
 public:
  ClassTokenLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                  const LayerContext& context)
      : in_(spec.in),
        out_(spec.out),
        context_(context),
        row_(FindParameter(parameters, Parameters(spec).front().name)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& /*pass*/, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(out_.WithBatch(x.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->Prepend(Floats(row_->value), x.view(), y.view())));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(in_.WithBatch(dy.shape()[0])));
    RETURN_IF_ERROR(
        ToStatus(context_.ops->PrependBackward(dy.view(), dx.view(), Floats(row_->gradient))));
    return dx;
  }

 private:
  const Shape in_, out_;
  const LayerContext context_;
  Parameter* const row_;
};

}  // namespace

std::unique_ptr<Layer> NewTypeEmbeddingLayer(const LayerSpec& spec,
                                             absl::Span<Parameter> parameters,
                                             const LayerContext& context) {
  return std::make_unique<TypeEmbeddingLayer>(spec, parameters, context);
}

std::unique_ptr<Layer> NewClassTokenLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                                          const LayerContext& context) {
  return std::make_unique<ClassTokenLayer>(spec, parameters, context);
}

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
