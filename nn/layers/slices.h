// Ends of layers that work on slices of positions (models/sliced_positions.h). A pass over few
// positions, with a cache, has no slices.
#pragma once

#include <utility>

#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/slice_copies.h"

namespace thinwire {

// A layer whose result are the slices of x that are here.
class ToSlicesLayer final : public Layer {
 public:
  ToSlicesLayer(const LayerSpec& spec, bool needs_dx, const LayerContext& context)
      : name_(spec.name), slices_(spec.slices), needs_dx_(needs_dx), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    if (pass.cache != nullptr) return x;
    return SlicesOf(x, slices_, context_.ops);
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* /*saved*/) override {
    if (!needs_dx_) return Tensor();
    return context_.sums->Gather(PassDirection::kBackward, name_, slices_, std::move(dy));
  }

 private:
  const std::string name_;
  const PositionSlices slices_;
  const bool needs_dx_;
  const LayerContext context_;
};

// A layer whose result are the whole samples of which x has slices.
class ToWholeLayer final : public Layer {
 public:
  ToWholeLayer(const LayerSpec& spec, const LayerContext& context)
      : name_(spec.name), slices_(spec.slices), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* /*saved*/) override {
    if (pass.cache != nullptr) return x;
    return context_.sums->Gather(PassDirection::kForward, name_, slices_, std::move(x));
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* /*saved*/) override {
    return SlicesOf(dy, slices_, context_.ops);
  }

 private:
  const std::string name_;
  const PositionSlices slices_;
  const LayerContext context_;
};

}  // namespace thinwire
