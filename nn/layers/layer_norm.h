// Layer norm and RMS norm over the last axis, with a residual's additions in the same passes, and
// RMS norm of heads (LayerNormForward, HeadNormForward and their backward passes in nn/ops.h).
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
  const PositionSlices slices_;
  const float epsilon_;
  const bool centred_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;  // null: no bias
};

// A layer for kHeadNorm. It keeps x and each head's statistics for Backward. Its parameter outlives
// it.
class HeadNormLayer final : public Layer {
 public:
  HeadNormLayer(const LayerSpec& spec, absl::Span<Parameter> parameters,
                const LayerContext& context)
      : spec_(spec),
        head_size_(HeadSize(spec)),
        context_(context),
        weight_(FindParameter(parameters, spec.name + ".weight")) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override;
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override;

 private:
  // Sets the numbers of heads and their size.
  template <typename Arguments>
  void SetSizes(Arguments* a) const {
    a->heads = spec_.heads;
    a->kv_heads = spec_.kv_heads == 0 ? spec_.heads : spec_.kv_heads;
    a->head_size = head_size_;
  }

  const LayerSpec spec_;
  const int64_t head_size_;
  const LayerContext context_;
  Parameter* const weight_;
};

}  // namespace thinwire
