#include <utility>

#include "base/status.h"
#include "nn/layers/embedding.h"
#include "nn/layers/kinds.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

absl::StatusOr<std::unique_ptr<Linear>> NewMap(int64_t in, int64_t out, DType compute, Ops* ops) {
  LinearSpec spec;
  spec.in_features = in;
  spec.out_features = out;
  spec.compute = compute;
  Linear* map = nullptr;
  RETURN_IF_ERROR(ToStatus(ops->NewLinear(spec, &map)));
  return std::unique_ptr<Linear>(map);
}

// Maps with W [k, features] by one linear operation from features to k: its forward pass projects,
// its backward pass expands.
class BasisLayer final : public Layer {
 public:
  BasisLayer(const LayerSpec& spec, absl::Span<Parameter> parameters, const LayerContext& context,
             std::unique_ptr<Linear> map)
      : projects_(spec.kind == LayerKind::kProject),
        in_(spec.in),
        out_(spec.out),
        context_(context),
        basis_(FindParameter(parameters, spec.name + ".weight")),
        map_(std::move(map)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(Map(projects_, x, y));
    if (pass.mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor x = saved->Pop();
    if (basis_->spec.is_trained() && context_.splits_backward) saved->Defer({this, x, dy});
    if (basis_->spec.is_trained() && !context_.splits_backward) {
      RETURN_IF_ERROR(BackwardWeights(x, dy));
    }
    ASSIGN_OR_RETURN(Tensor dx, context_.NewResult(in_, dy, saved->pass()));
    RETURN_IF_ERROR(Map(!projects_, dy, dx));
    return dx;
  }

  absl::Status BackwardWeights(const Tensor& x, const Tensor& dy) override {
    const Tensor &features = projects_ ? x : dy, &code = projects_ ? dy : x;
    return ToStatus(
        map_->BackwardWeights(RowsOf(features), RowsOf(code), Floats(basis_->gradient), nullptr));
  }

  absl::Status ParametersChanged(ChangedBy /*by*/) override {
    return ToStatus(map_->LoadWeights(Floats(basis_->value), nullptr));
  }

 private:
  absl::Status Map(bool projects, const Tensor& from, const Tensor& to) {
    return ToStatus(projects ? map_->Forward(RowsOf(from), RowsOf(to))
                             : map_->BackwardData(RowsOf(from), RowsOf(to)));
  }

  const bool projects_;
  const Shape in_, out_;
  const LayerContext context_;
  Parameter* const basis_;
  const std::unique_ptr<Linear> map_;
};

// Returns the rows of a table for a pass's ids, in the compute type.
absl::StatusOr<Tensor> RowsFor(const Tensor& x, const Pass& pass, const Tensor& table,
                               const LayerContext& context) {
  RETURN_IF_ERROR(pass.CheckIds(x.shape()));
  const Shape shape = {x.shape()[0], x.shape()[1], table.shape()[1]};
  ASSIGN_OR_RETURN(Tensor rows, context.NewTensor(shape));
  RETURN_IF_ERROR(LookUp(context, pass.ids, table, rows));
  return rows;
}

// T = table factor, or its negative: the factor is negated once per update, not each row.
class TrainedAnchorLayer final : public Layer {
 public:
  TrainedAnchorLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                     const LayerContext& context, std::unique_ptr<Linear> map)
      : context_(context), subtracts_(spec.subtracts), map_(std::move(map)) {
    const std::string& owner = spec.shares.empty() ? spec.name : spec.shares;
    table_ = FindParameter(parameters, owner + ".weight");
    factor_ = FindParameter(parameters, owner + ".factor");
  }

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    ASSIGN_OR_RETURN(const Tensor rows, RowsFor(x, pass, table_->value, context_));
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(map_->BackwardData(RowsOf(rows), RowsOf(y))));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(x.view(), y.view(), y.view())));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const int64_t rank = table_->value.shape()[1];
    ASSIGN_OR_RETURN(const Tensor drows, context_.NewTensor({dy.shape()[0], dy.shape()[1], rank}));
    RETURN_IF_ERROR(ToStatus(map_->Forward(RowsOf(dy), RowsOf(drows))));
    RETURN_IF_ERROR(LookUpBackward(context_, saved->pass().ids, drows, *table_));
    return dy;
  }

  absl::Status ParametersChanged(ChangedBy /*by*/) override {
    const Tensor& factor = factor_->value;
    if (!subtracts_) return ToStatus(map_->LoadWeights(Floats(factor), nullptr));
    if (negative_.empty()) {
      ASSIGN_OR_RETURN(negative_, Tensor::Allocate(context_.device, DType::kF32, factor.shape()));
    }
    RETURN_IF_ERROR(ToStatus(context_.ops->Combine(
        {-1, Floats(factor), 0, nullptr, Floats(negative_), factor.elements()})));
    return ToStatus(map_->LoadWeights(Floats(negative_), nullptr));
  }

 private:
  const LayerContext context_;
  const bool subtracts_;
  Parameter* table_;
  Parameter* factor_;
  const std::unique_ptr<Linear> map_;  // from features to the rank
  Tensor negative_;                    // the factor's negative, if it subtracts
};

// T = table, or T = -table U^T, which is computed when parameters change.
class FixedAnchorLayer final : public Layer {
 public:
  FixedAnchorLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                   const LayerContext& context, std::unique_ptr<Linear> map)
      : context_(context), map_(std::move(map)) {
    const std::string& owner = spec.shares.empty() ? spec.name : spec.shares;
    table_ = FindParameter(parameters, owner + ".weight");
    if (map_ != nullptr) basis_ = FindParameter(parameters, spec.through + ".weight");
  }

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    const Tensor& table = map_ == nullptr ? table_->value : of_code_;
    ASSIGN_OR_RETURN(Tensor y, RowsFor(x, pass, table, context_));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(x.view(), y.view(), y.view())));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* /*saved*/) override { return dy; }

  absl::Status ParametersChanged(ChangedBy /*by*/) override {
    if (map_ == nullptr) return absl::OkStatus();
    const Shape shape = {table_->value.shape()[0], basis_->value.shape()[0]};
    if (of_code_.empty()) {
      ASSIGN_OR_RETURN(of_code_, Tensor::Allocate(context_.device, DType::kF32, shape));
    }
    RETURN_IF_ERROR(ToStatus(map_->LoadWeights(Floats(basis_->value), nullptr)));
    RETURN_IF_ERROR(ToStatus(map_->Forward(table_->value.view(), of_code_.view())));
    return ToStatus(context_.ops->Combine(
        {-1, Floats(of_code_), 0, nullptr, Floats(of_code_), of_code_.elements()}));
  }

 private:
  const LayerContext context_;
  Parameter* table_;
  Parameter* basis_ = nullptr;
  const std::unique_ptr<Linear> map_;  // fp32; null if the table is added as it is
  Tensor of_code_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewBasisLayer(const LayerSpec& spec,
                                                     absl::Span<Parameter> parameters,
                                                     const LayerContext& context) {
  const bool projects = spec.kind == LayerKind::kProject;
  const int64_t features = projects ? spec.in_features : spec.out_features;
  const int64_t code = projects ? spec.out_features : spec.in_features;
  ASSIGN_OR_RETURN(auto map, NewMap(features, code, context.compute, context.ops));
  return std::make_unique<BasisLayer>(spec, parameters, context, std::move(map));
}

absl::StatusOr<std::unique_ptr<Layer>> NewAnchorLayer(const LayerSpec& spec,
                                                      absl::Span<Parameter> parameters,
                                                      const LayerContext& context) {
  if (spec.trained) {
    ASSIGN_OR_RETURN(auto map, NewMap(spec.in_features, spec.rank, context.compute, context.ops));
    return std::make_unique<TrainedAnchorLayer>(spec, parameters, context, std::move(map));
  }
  std::unique_ptr<Linear> map;
  if (!spec.through.empty()) {
    const Shape& basis = FindParameter(parameters, spec.through + ".weight")->value.shape();
    ASSIGN_OR_RETURN(map, NewMap(basis[1], basis[0], DType::kF32, context.ops));
  }
  return std::make_unique<FixedAnchorLayer>(spec, parameters, context, std::move(map));
}

}  // namespace thinwire
