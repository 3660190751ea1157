// Layers before everything that is trained: nobody wants their gradients.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "nn/layers/layer.h"

namespace thinwire {

// A layer that keeps nothing. Backward returns an empty tensor.
class ForwardOnlyLayer final : public Layer {
 public:
  explicit ForwardOnlyLayer(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    Saved unused;
    unused.set_pass(pass);
    return layer_->Forward(std::move(x), pass, &unused);
  }

  bool takes_sums() const override { return layer_->takes_sums(); }
  absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* /*saved*/) override {
    Saved unused;
    unused.set_pass(pass);
    return layer_->ForwardSum(std::move(x), pass, &unused);
  }

  absl::StatusOr<Tensor> Backward(Tensor /*dy*/, Saved* /*saved*/) override { return Tensor(); }
  bool takes_gradient_sums() const override { return true; }
  absl::StatusOr<Summands> BackwardSum(Summands /*dy*/, Saved* /*saved*/) override {
    return Summands();
  }

  absl::Status ParametersChanged(ChangedBy by) override { return layer_->ParametersChanged(by); }

 private:
  const std::unique_ptr<Layer> layer_;
};

}  // namespace thinwire
