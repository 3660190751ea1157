// Activation checkpointing (Chen et al., 2016): layers that keep only their input and run forward
// again before they run backward.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "nn/layers/layer.h"

namespace thinwire {

class RecomputedLayer final : public Layer {
 public:
  explicit RecomputedLayer(std::unique_ptr<Layer> layer) : layer_(std::move(layer)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    if (pass.mode != Mode::kTrain) return layer_->Forward(std::move(x), pass, saved);
    saved->Push(x);
    Saved unused;
    unused.set_pass(pass);
    return layer_->Forward(std::move(x), pass, &unused);
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    Pass again = saved->pass();
    again.again = true;
    Saved recomputed;
    recomputed.set_pass(again);
    RETURN_IF_ERROR(layer_->Forward(saved->Pop(), again, &recomputed).status());
    ASSIGN_OR_RETURN(Tensor dx, layer_->Backward(std::move(dy), &recomputed));
    for (WaitingWeights& waiting : recomputed.TakeWaiting()) saved->Defer(std::move(waiting));
    return dx;
  }

  absl::Status ParametersChanged(ChangedBy by) override { return layer_->ParametersChanged(by); }

 private:
  const std::unique_ptr<Layer> layer_;
};

}  // namespace thinwire
