// Batch norm, with a residual added and a ReLU applied in the same pass (BatchNormForward in
// nn/ops.h).
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/model.h"
#include "nn/layers/layer.h"
#include "nn/parameters.h"

namespace thinwire {

class BatchNormLayer final : public Layer {
 public:
  BatchNormLayer(const LayerSpec& spec, bool relu, absl::Span<Parameter> parameters,
                 const LayerContext& context);

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    return ForwardAdding(std::move(x), Tensor(), pass, saved);
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override;

  // Do the same with `residual` (empty: none) added before the ReLU.
  absl::StatusOr<Tensor> ForwardAdding(Tensor x, Tensor residual, const Pass& pass, Saved* saved);
  struct Gradients {
    Tensor dx, dresidual;  // may share memory with dy
  };
  absl::StatusOr<Gradients> BackwardAdding(Summands dy, Saved* saved);

 private:
  absl::StatusOr<Tensor> Normalize(const Tensor& x, const Tensor& residual, const Tensor& y,
                                   const Pass& pass) const;
  absl::Status Differentiate(const Summands& dy, const Tensor& dx, const Tensor& dresidual,
                             Saved* saved);

  const bool relu_;
  const int64_t channels_;
  const LayerContext context_;
  Parameter* const weight_;
  Parameter* const bias_;
  Parameter* const running_mean_;
  Parameter* const running_var_;
};

}  // namespace thinwire
