// Layers that look up rows of a table: for token ids, for positions (Embedding in nn/ops.h).
// Parameters outlive them.
#pragma once

#include <utility>

#include "absl/types/span.h"
#include "base/status.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/ops.h"
#include "nn/parameters.h"

namespace thinwire {

// Looks `ids` up in a table: y = table[ids].
inline absl::Status LookUp(const LayerContext& context, const Tensor& ids, const Tensor& table,
                           const Tensor& y) {
  Embedding a;
  a.ids = ids.view();
  a.table = Floats(table);
  a.vocabulary = table.shape()[0];
  a.features = table.shape()[1];
  a.y = y.view();
  return ToStatus(context.ops->Embed(a));
}

// Adds dy to the gradients of the rows that LookUp read, unless the table is frozen.
inline absl::Status LookUpBackward(const LayerContext& context, const Tensor& ids, const Tensor& dy,
                                   const Parameter& table) {
  if (table.gradient.empty()) return absl::OkStatus();
  EmbeddingBackward a;
  a.ids = ids.view();
  a.dy = dy.view();
  a.dtable = Floats(table.gradient);
  a.vocabulary = table.value.shape()[0];
  a.features = table.value.shape()[1];
  return ToStatus(context.ops->EmbedBackward(a));
}

// A layer that keeps the ids; Backward returns an empty tensor.
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                 const LayerContext& context)
      : out_(spec.out),
        context_(context),
        table_(FindParameter(parameters, spec.name + ".weight")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(LookUp(context_, x, table_->value, y));
    if (pass.mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor ids = saved->Pop();
    RETURN_IF_ERROR(LookUpBackward(context_, ids, dy, *table_));
    return Tensor();
  }

 private:
  const Shape out_;
  const LayerContext context_;
  Parameter* const table_;
};

// A layer that adds the row of its position to each row of x, in place if nobody else holds x. In a
// packed document it is the row of the place there. It keeps nothing.
class PositionEmbeddingLayer final : public Layer {
 public:
  PositionEmbeddingLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                         const LayerContext& context)
      : features_(spec.out_features),
        context_(context),
        table_(FindParameter(parameters, Parameters(spec).front().name)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    if (!pass.documents.empty()) return AddPlaces(x, pass.documents);
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
    if (table_->gradient.empty()) return dy;
    const PackedDocuments& documents = saved->pass().documents;
    if (!documents.empty()) {
      RETURN_IF_ERROR(LookUpBackward(context_, documents.place, dy, *table_));
      return dy;
    }
    EmbeddingBackward a;
    a.dy = dy.view();
    a.features = features_;
    a.dpositions = Floats(table_->gradient) + saved->pass().first_position * a.features;
    RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(a)));
    return dy;
  }

 private:
  absl::StatusOr<Tensor> AddPlaces(const Tensor& x, const PackedDocuments& documents) const {
    RETURN_IF_ERROR(documents.Check(x.shape()));
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(LookUp(context_, documents.place, table_->value, y));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(x.view(), y.view(), y.view())));
    return y;
  }

  const int64_t features_;
  const LayerContext context_;
  Parameter* const table_;
};

// A layer that adds to each row of x that of its position's type. It keeps nothing. With a
// separator it reads the ids of the pass. InvalidArgument if these do not fit x.
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
    RETURN_IF_ERROR(LookUp(context_, types, table_->value, y));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(x.view(), y.view(), y.view())));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    ASSIGN_OR_RETURN(const Tensor types, TypesOf(dy.shape(), saved->pass()));
    RETURN_IF_ERROR(LookUpBackward(context_, types, dy, *table_));
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

// A layer that puts its row before the positions of x. It keeps nothing.
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

}  // namespace thinwire
