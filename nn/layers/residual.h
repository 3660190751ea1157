// y = body(x) + shortcut(x) (He et al., CVPR 2016); an empty shortcut is the identity.
#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/layer.h"
#include "nn/layers/layer_norm.h"
#include "nn/layers/sequence.h"

namespace thinwire {

// The parts of its body and its shortcut.
struct ResidualParts {
  // Null, or goes before `body` and adds up x and, in the backward pass, the shortcut's gradient in
  // its own passes. Then the shortcut is empty.
  std::unique_ptr<LayerNormLayer> first;
  std::unique_ptr<Sequence> body;
  // Null, or follows `body` and adds the shortcut in its own pass, with the ReLU that it was built
  // with.
  std::unique_ptr<BatchNormLayer> last;
  std::unique_ptr<Sequence> shortcut;
};

// A layer that, without `last`, leaves the addition to the next layer, where that takes sums.
class ResidualLayer final : public Layer {
 public:
  ResidualLayer(ResidualParts parts, const LayerContext& context)
      : parts_(std::move(parts)), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Summands y, ForwardSum({std::move(x), Tensor()}, pass, saved));
    return context_.Sum(std::move(y));
  }

  bool takes_sums() const override { return true; }
  absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Branches start, Start(std::move(x), pass, saved));
    ASSIGN_OR_RETURN(Tensor z, parts_.body->Forward(std::move(start.of_body), pass, saved));
    if (parts_.last == nullptr) return Summands{std::move(z), std::move(start.of_shortcut)};
    ASSIGN_OR_RETURN(Tensor y, parts_.last->ForwardAdding(
                                   std::move(z), std::move(start.of_shortcut), pass, saved));
    return Summands{std::move(y), Tensor()};
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    ASSIGN_OR_RETURN(Summands dx, BackwardSum({std::move(dy), Tensor()}, saved));
    return context_.Sum(std::move(dx));
  }

  bool takes_gradient_sums() const override { return true; }
  absl::StatusOr<Summands> BackwardSum(Summands dy, Saved* saved) override {
    BatchNormLayer::Gradients split;
    if (parts_.last != nullptr) {
      ASSIGN_OR_RETURN(split, parts_.last->BackwardAdding(std::move(dy), saved));
    } else {
      ASSIGN_OR_RETURN(split.dx, context_.Sum(std::move(dy)));
      split.dresidual = split.dx;
    }
    ASSIGN_OR_RETURN(Tensor through_body, parts_.body->Backward(std::move(split.dx), saved));
    if (parts_.first != nullptr) {
      ASSIGN_OR_RETURN(Tensor dx, parts_.first->BackwardAdding(std::move(through_body),
                                                               std::move(split.dresidual), saved));
      return Summands{std::move(dx), Tensor()};
    }
    ASSIGN_OR_RETURN(Tensor through_shortcut,
                     parts_.shortcut->Backward(std::move(split.dresidual), saved));
    if (through_body.empty() || through_shortcut.empty()) return Summands();
    return Summands{std::move(through_body), std::move(through_shortcut)};
  }

  absl::Status ParametersChanged(ChangedBy by) override {
    RETURN_IF_ERROR(parts_.body->ParametersChanged(by));
    return parts_.shortcut->ParametersChanged(by);
  }

 private:
  struct Branches {
    Tensor of_body, of_shortcut;  // x of the rest of the body, and what is added at its end
  };
  absl::StatusOr<Branches> Start(Summands x, const Pass& pass, Saved* saved) {
    Branches branches;
    if (parts_.first != nullptr) {
      ASSIGN_OR_RETURN(LayerNormLayer::Normalized normalized,
                       parts_.first->ForwardAdding(std::move(x), pass, saved));
      return Branches{std::move(normalized.y), std::move(normalized.x)};
    }
    ASSIGN_OR_RETURN(branches.of_body, context_.Sum(std::move(x)));
    ASSIGN_OR_RETURN(branches.of_shortcut, parts_.shortcut->Forward(branches.of_body, pass, saved));
    return branches;
  }

  const ResidualParts parts_;
  const LayerContext context_;
};

}  // namespace thinwire
