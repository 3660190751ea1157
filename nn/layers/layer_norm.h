// Layer norm and RMS norm over the last axis, with a residual's additions in the same passes
// (LayerNormForward and LayerNormBackward in nn/ops.h).
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/parameters.h"

namespace thinwire {

// A layer for kLayerNorm or kRmsNorm. It keeps x and each row's statistics for Backward. Parameters
// outlive it.
class LayerNormLayer final : public Layer {
 public:
  LayerNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                 const LayerContext& context);

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override;
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    return BackwardAdding(std::move(dy), Tensor(), saved);
  }
  bool takes_sums() const override { return true; }
  absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* saved) override;

  struct Normalized {
    Tensor x, y;  // x, added up, and the result for it
  };
  // Does what Forward does, and returns x besides.
  absl::StatusOr<Normalized> ForwardAdding(Summands x, const Pass& pass, Saved* saved);
  // Returns dx + addend (empty: none).
  absl::StatusOr<Tensor> BackwardAdding(Tensor dy, Tensor addend, Saved* saved);

 private:
  const int64_t features_;
  const float epsilon_;
  const bool centred_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;  // null: no bias
};

}  // namespace thinwire
