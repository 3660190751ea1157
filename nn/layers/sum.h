// The sum of what tensor-parallel parts make of x, and a bias (models/parts.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "nn/layers/layer.h"
#include "nn/layers/sequence.h"
#include "nn/parameters.h"
#include "nn/slice_copies.h"

namespace thinwire {

class SumLayer final : public Layer {
 public:
  // Makes the layer; `parts` are those of this segment. What it keeps is what they keep. The bias
  // outlives it.
  SumLayer(const LayerSpec& spec, std::vector<std::unique_ptr<Sequence>> parts,
           absl::Span<Parameter> parameters, const LayerContext& context)
      : name_(spec.name),
        slices_(spec.slices),
        parts_(std::move(parts)),
        bias_(spec.bias ? FindParameter(parameters, spec.name + ".bias") : nullptr),
        context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    constexpr PassDirection kForward = PassDirection::kForward;
    const bool on_slices = !slices_.are_whole() && pass.cache == nullptr;
    if (on_slices) {
      ASSIGN_OR_RETURN(x, context_.sums->Gather(kForward, name_, slices_, std::move(x)));
    }
    std::vector<Tensor> partials;
    for (const auto& part : parts_) {
      ASSIGN_OR_RETURN(partials.emplace_back(), part->Forward(x, pass, saved));
    }
    x = Tensor();
    ASSIGN_OR_RETURN(
        Tensor y, on_slices ? context_.sums->Scatter(kForward, name_, slices_, std::move(partials))
                            : context_.sums->Add(kForward, name_, std::move(partials)));
    if (bias_ == nullptr) return y;
    const TensorView rows = AsPositions(RowsOf(y));
    Embedding add;
    add.x = add.y = rows;
    add.positions = Floats(bias_->value);
    add.features = rows.dims[2];
    RETURN_IF_ERROR(ToStatus(context_.ops->Embed(add)));
    return y;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    constexpr PassDirection kBackward = PassDirection::kBackward;
    RETURN_IF_ERROR(AddToBias(dy));
    if (!slices_.are_whole()) {
      ASSIGN_OR_RETURN(dy, context_.sums->Gather(kBackward, name_, slices_, std::move(dy)));
    }
    std::vector<Tensor> partials(parts_.size());
    for (size_t i = parts_.size(); i-- > 0;) {
      ASSIGN_OR_RETURN(partials[i], parts_[i]->Backward(dy, saved));
    }
    dy = Tensor();
    if (partials.front().empty()) return Tensor();  // nobody wants it
    if (slices_.are_whole()) return context_.sums->Add(kBackward, name_, std::move(partials));
    return context_.sums->Scatter(kBackward, name_, slices_, std::move(partials));
  }

  absl::Status ParametersChanged(ChangedBy by) override {
    for (const auto& part : parts_) RETURN_IF_ERROR(part->ParametersChanged(by));
    return absl::OkStatus();
  }

 private:
  // Returns rows as samples of one position each.
  static TensorView AsPositions(const TensorView& rows) {
    return ViewOf(rows.data, rows.dtype, Shape{rows.dims[0], 1, rows.dims[1]});
  }
  absl::Status AddToBias(const Tensor& dy) const {
    const bool is_trained = bias_ != nullptr && bias_->spec.is_trained();
    for (int group = 0; is_trained && group < slices_.groups(); ++group) {
      EmbeddingBackward of_bias;
      of_bias.dy = AsPositions(RowsAt(dy, slices_.RowsOf(group, RowsOf(dy).dims[0])));
      of_bias.features = of_bias.dy.dims[2];
      of_bias.dpositions = GradientOf(*bias_, group);
      RETURN_IF_ERROR(ToStatus(context_.ops->EmbedBackward(of_bias)));
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const PositionSlices slices_;
  const std::vector<std::unique_ptr<Sequence>> parts_;
  Parameter* const bias_;  // null: none
  const LayerContext context_;
};

}  // namespace thinwire
