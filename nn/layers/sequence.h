// Layers that run one after the other. What one adds at its end, the next one does in its own pass
// if it takes sums; likewise the one before it in the backward pass.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "nn/layers/layer.h"

namespace thinwire {

class Sequence final : public Layer {
 public:
  explicit Sequence(const LayerContext& context) : context_(context) {}

  void Append(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  bool empty() const { return layers_.empty(); }

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Summands y, ForwardSum({std::move(x), Tensor()}, pass, saved));
    return context_.Sum(std::move(y));
  }

  bool takes_sums() const override { return true; }
  absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* saved) override {
    for (const auto& layer : layers_) {
      if (!layer->takes_sums()) {
        ASSIGN_OR_RETURN(x.x, context_.Sum(std::move(x)));
        x.addend = Tensor();
      }
      ASSIGN_OR_RETURN(x, layer->ForwardSum(std::move(x), pass, saved));
    }
    return x;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    ASSIGN_OR_RETURN(Summands dx, BackwardSum({std::move(dy), Tensor()}, saved));
    return context_.Sum(std::move(dx));
  }

  bool takes_gradient_sums() const override { return true; }
  absl::StatusOr<Summands> BackwardSum(Summands dy, Saved* saved) override {
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      if (!(*layer)->takes_gradient_sums()) {
        ASSIGN_OR_RETURN(dy.x, context_.Sum(std::move(dy)));
        dy.addend = Tensor();
      }
      ASSIGN_OR_RETURN(dy, (*layer)->BackwardSum(std::move(dy), saved));
    }
    return dy;
  }

  absl::Status ParametersChanged(ChangedBy by) override {
    for (const auto& layer : layers_) RETURN_IF_ERROR(layer->ParametersChanged(by));
    return absl::OkStatus();
  }

 private:
  const LayerContext context_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace thinwire
