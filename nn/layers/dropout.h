// Dropout in training (Dropout in nn/ops.h); otherwise the identity.
#pragma once

#include <cstdint>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/ops.h"
#include "nn/slice_copies.h"

namespace thinwire {

// Returns the key with which layer `name` draws in one step.
inline uint64_t DropoutKey(uint64_t seed, const std::string& name, uint64_t step) {
  return RandomKey(RandomKey(seed, name), step);
}

// A layer that works in place if nobody else holds its input. It keeps nothing: Backward draws the
// same mask again.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const LayerSpec& spec, const LayerContext& context)
      : name_(spec.name),
        slices_(spec.slices),
        rate_(static_cast<float>(spec.dropout)),
        context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    if (pass.mode != Mode::kTrain) return x;
    return Drop(x, pass);
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    return Drop(dy, saved->pass());
  }

 private:
  absl::StatusOr<Tensor> Drop(const Tensor& x, const Pass& pass) const {
    ASSIGN_OR_RETURN(Tensor y, context_.InPlaceOrNew(x));
    Dropout a;
    a.rate = rate_;
    a.key = DropoutKey(context_.dropout_seed, name_, pass.step);
    a.first_sample = pass.first_sample;
    if (slices_.are_whole()) {
      a.x = x.view();
      a.y = y.view();
      RETURN_IF_ERROR(ToStatus(context_.ops->Drop(a)));
      return y;
    }
    for (int group = 0; group < slices_.groups(); ++group) {
      a.x = SliceAt(x, slices_, group).view();
      a.y = SliceAt(y, slices_, group).view();
      a.first_element = slices_.Of(slices_.first + group).first * x.shape()[1];
      RETURN_IF_ERROR(ToStatus(context_.ops->Drop(a)));
    }
    return y;
  }

  const std::string name_;
  const PositionSlices slices_;
  const float rate_;
  const LayerContext context_;
};

}  // namespace thinwire
