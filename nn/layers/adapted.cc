#include <utility>
#include <vector>

#include "base/status.h"
#include "nn/layers/dropout.h"
#include "nn/layers/kinds.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

absl::StatusOr<std::unique_ptr<Linear>> NewProduct(int64_t in, int64_t out,
                                                   const LayerContext& context) {
  LinearSpec spec;
  spec.in_features = in;
  spec.out_features = out;
  spec.compute = context.compute;
  Linear* op = nullptr;
  RETURN_IF_ERROR(ToStatus(context.ops->NewLinear(spec, &op)));
  return std::unique_ptr<Linear>(op);
}

// An adapter: z = B t, t = s A drop(x).   x: [..., in]   A: [rank, in]   B: [rows, rank]
// A product multiplies with s A, so that dB needs no scaling; dA is scaled as it is added.
class Adapter {
 public:
  Adapter(const LayerSpec& layer, const AdapterSpec& spec, absl::Span<Parameter> parameters,
          const LayerContext& context, std::unique_ptr<Linear> down, std::unique_ptr<Linear> up)
      : rows_(spec.rows),
        rank_(layer.adapter_rank),
        scale_(static_cast<float>(layer.adapter_scale)),
        context_(context),
        a_(FindParameter(parameters, spec.name + ".lora_A.weight")),
        b_(FindParameter(parameters, spec.name + ".lora_B.weight")),
        down_(std::move(down)),
        up_(std::move(up)) {
    LayerSpec dropout = NewLayer(LayerKind::kDropout, spec.name + ".lora_dropout");
    dropout.dropout = layer.adapter_dropout;
    if (dropout.dropout > 0) dropout_ = std::make_unique<DropoutLayer>(dropout, context);
  }

  // Adds z to its columns of y. Returns t.
  absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass& pass, const Tensor& y) {
    ASSIGN_OR_RETURN(const Tensor dropped, Dropped(x, pass));
    ASSIGN_OR_RETURN(Tensor t, NewColumns(x, rank_));
    RETURN_IF_ERROR(ToStatus(down_->Forward(RowsOf(dropped), RowsOf(t))));
    ASSIGN_OR_RETURN(const Tensor z, NewColumns(x, rows_.count));
    RETURN_IF_ERROR(ToStatus(up_->Forward(RowsOf(t), RowsOf(z))));
    RETURN_IF_ERROR(AddToColumns(z, y));
    return t;
  }

  // Adds to the gradients of A and B, and to dx unless that is empty.
  absl::Status Backward(const Tensor& x, const Tensor& t, const Tensor& dy, const Tensor& dx,
                        Saved* saved) {
    ASSIGN_OR_RETURN(const Tensor dz, ColumnsOf(dy));
    RETURN_IF_ERROR(
        ToStatus(up_->BackwardWeights(RowsOf(t), RowsOf(dz), Floats(b_->gradient), nullptr)));
    ASSIGN_OR_RETURN(const Tensor dt, NewColumns(dy, rank_));
    RETURN_IF_ERROR(ToStatus(up_->BackwardData(RowsOf(dz), RowsOf(dt))));
    RETURN_IF_ERROR(AddToGradientOfA(x, dt, saved->pass()));
    if (dx.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(Tensor through, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(down_->BackwardData(RowsOf(dt), RowsOf(through))));
    if (dropout_ != nullptr) {
      ASSIGN_OR_RETURN(through, dropout_->Backward(std::move(through), saved));
    }
    return ToStatus(context_.ops->Add(dx.view(), through.view(), dx.view()));
  }

  absl::Status ParametersChanged() {
    const int64_t n = a_->value.elements();
    if (scaled_.empty()) {
      ASSIGN_OR_RETURN(scaled_, Tensor::Allocate(context_.device, DType::kF32, a_->value.shape()));
    }
    RETURN_IF_ERROR(ToStatus(
        context_.ops->Combine({scale_, Floats(a_->value), 0, nullptr, Floats(scaled_), n})));
    RETURN_IF_ERROR(ToStatus(down_->LoadWeights(Floats(scaled_), nullptr)));
    return ToStatus(up_->LoadWeights(Floats(b_->value), nullptr));
  }

 private:
  // Returns new memory for rows as those of `like`, of so many columns.
  absl::StatusOr<Tensor> NewColumns(const Tensor& like, int64_t columns) const {
    return context_.NewTensor(like.shape().With(like.shape().rank() - 1, columns));
  }
  // Returns x as the adapter sees it; the other users of x see it as it was.
  absl::StatusOr<Tensor> Dropped(const Tensor& x, const Pass& pass) {
    if (dropout_ == nullptr || pass.mode != Mode::kTrain) return x;
    return dropout_->Forward(x, pass, nullptr);
  }
  absl::StatusOr<Tensor> ColumnsOf(const Tensor& dy) const {
    ASSIGN_OR_RETURN(Tensor columns, NewColumns(dy, rows_.count));
    ColumnCopy copy{RowsOf(dy), RowsOf(columns), rows_.first, 0, rows_.count};
    RETURN_IF_ERROR(ToStatus(context_.ops->CopyColumns(copy)));
    return columns;
  }
  absl::Status AddToColumns(const Tensor& z, const Tensor& y) const {
    ASSIGN_OR_RETURN(const Tensor sum, ColumnsOf(y));
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(sum.view(), z.view(), sum.view())));
    return ToStatus(
        context_.ops->CopyColumns({RowsOf(sum), RowsOf(y), 0, rows_.first, rows_.count}));
  }
  absl::Status AddToGradientOfA(const Tensor& x, const Tensor& dt, const Pass& pass) {
    ASSIGN_OR_RETURN(const Tensor dropped, Dropped(x, pass));
    const int64_t n = a_->value.elements();
    ASSIGN_OR_RETURN(const Tensor unscaled,
                     Tensor::Allocate(context_.device, DType::kF32, a_->value.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->Zero(Floats(unscaled), n)));
    RETURN_IF_ERROR(
        ToStatus(down_->BackwardWeights(RowsOf(dropped), RowsOf(dt), Floats(unscaled), nullptr)));
    float* const gradient = Floats(a_->gradient);
    return ToStatus(context_.ops->Combine({scale_, Floats(unscaled), 1, gradient, gradient, n}));
  }

  const IndexRange rows_;
  const int64_t rank_;
  const float scale_;
  const LayerContext context_;
  Parameter* const a_;
  Parameter* const b_;
  std::unique_ptr<DropoutLayer> dropout_;  // null: none
  const std::unique_ptr<Linear> down_, up_;
  Tensor scaled_;  // s A
};

class AdaptedLayer final : public Layer {
 public:
  AdaptedLayer(std::unique_ptr<Layer> base, bool needs_dx,
               std::vector<std::unique_ptr<Adapter>> adapters)
      : base_(std::move(base)), needs_dx_(needs_dx), adapters_(std::move(adapters)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, base_->Forward(x, pass, saved));
    if (pass.mode == Mode::kTrain) saved->Push(x);
    for (const auto& adapter : adapters_) {
      ASSIGN_OR_RETURN(Tensor t, adapter->Forward(x, pass, y));
      if (pass.mode == Mode::kTrain) saved->Push(std::move(t));
    }
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    std::vector<Tensor> t(adapters_.size());
    for (size_t i = t.size(); i-- > 0;) t[i] = saved->Pop();
    const Tensor x = saved->Pop();
    ASSIGN_OR_RETURN(const Tensor dx, base_->Backward(dy, saved));
    for (size_t i = 0; i < adapters_.size(); ++i) {
      RETURN_IF_ERROR(adapters_[i]->Backward(x, t[i], dy, needs_dx_ ? dx : Tensor(), saved));
    }
    return dx;
  }

  absl::Status ParametersChanged(ChangedBy by) override {
    for (const auto& adapter : adapters_) RETURN_IF_ERROR(adapter->ParametersChanged());
    return base_->ParametersChanged(by);
  }

 private:
  const std::unique_ptr<Layer> base_;
  const bool needs_dx_;
  const std::vector<std::unique_ptr<Adapter>> adapters_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAdaptedLayer(const LayerSpec& spec, bool needs_dx,
                                                       absl::Span<Parameter> parameters,
                                                       const LayerContext& context) {
  ASSIGN_OR_RETURN(auto base,
                   NewLinearLayer(spec, needs_dx, /*makes_logits=*/false, parameters, context));
  std::vector<std::unique_ptr<Adapter>> adapters;
  for (const AdapterSpec& one : spec.adapters) {
    ASSIGN_OR_RETURN(auto down, NewProduct(spec.in_features, spec.adapter_rank, context));
    ASSIGN_OR_RETURN(auto up, NewProduct(spec.adapter_rank, one.rows.count, context));
    adapters.push_back(
        std::make_unique<Adapter>(spec, one, parameters, context, std::move(down), std::move(up)));
  }
  return std::make_unique<AdaptedLayer>(std::move(base), needs_dx, std::move(adapters));
}

}  // namespace thinwire
