// A block whose tensors are in a stash between its forward and its backward pass.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "nn/layers/layer.h"
#include "nn/stash.h"

namespace thinwire {

class StashedLayer final : public Layer {
 public:
  // Makes the layer; `stash` outlives it.
  StashedLayer(std::string block, std::unique_ptr<Layer> layer, Stash* stash)
      : block_(std::move(block)), layer_(std::move(layer)), stash_(stash) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    return Putting<Tensor>(pass, saved,
                           [&](Saved* own) { return layer_->Forward(std::move(x), pass, own); });
  }
  bool takes_sums() const override { return layer_->takes_sums(); }
  absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* saved) override {
    return Putting<Summands>(
        pass, saved, [&](Saved* own) { return layer_->ForwardSum(std::move(x), pass, own); });
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    return Taking<Tensor>(saved, [&](Saved* own) { return layer_->Backward(std::move(dy), own); });
  }
  bool takes_gradient_sums() const override { return layer_->takes_gradient_sums(); }
  absl::StatusOr<Summands> BackwardSum(Summands dy, Saved* saved) override {
    return Taking<Summands>(saved,
                            [&](Saved* own) { return layer_->BackwardSum(std::move(dy), own); });
  }

  absl::Status ParametersChanged(ChangedBy by) override { return layer_->ParametersChanged(by); }

 private:
  template <typename Result, typename Run>
  absl::StatusOr<Result> Putting(const Pass& pass, Saved* saved, const Run& run) {
    if (pass.mode != Mode::kTrain) return run(saved);
    Saved own;
    own.set_pass(pass);
    ASSIGN_OR_RETURN(Result y, run(&own));
    ASSIGN_OR_RETURN(auto stashed, stash_->Put(block_, pass, own.TakeTensors()));
    saved->PushStashed(std::move(stashed));
    return y;
  }

  template <typename Result, typename Run>
  absl::StatusOr<Result> Taking(Saved* saved, const Run& run) {
    Saved own;
    own.set_pass(saved->pass());
    const std::shared_ptr<StashedTensors> stashed = saved->PopStashed();
    ASSIGN_OR_RETURN(auto tensors, stash_->Take(block_, stashed.get()));
    own.PutTensors(std::move(tensors));
    ASSIGN_OR_RETURN(Result dx, run(&own));
    for (WaitingWeights& waiting : own.TakeWaiting()) saved->Defer(std::move(waiting));
    return dx;
  }

  const std::string block_;
  const std::unique_ptr<Layer> layer_;
  Stash* const stash_;
};

}  // namespace thinwire
