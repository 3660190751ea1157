#include <utility>

#include "nn/layers/kinds.h"

namespace thinwire {
namespace {

class ResidualLayer final : public Layer {
 public:
  ResidualLayer(std::unique_ptr<Sequence> body, std::unique_ptr<BatchNormLayer> last,
                std::unique_ptr<Sequence> shortcut, const LayerContext& context)
      : body_(std::move(body)),
        last_(std::move(last)),
        shortcut_(std::move(shortcut)),
        context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor short_cut, shortcut_->Forward(x, pass, saved));
    ASSIGN_OR_RETURN(Tensor z, body_->Forward(std::move(x), pass, saved));
    if (last_ != nullptr) {
      return last_->ForwardAdding(std::move(z), std::move(short_cut), pass, saved);
    }
    return Sum(std::move(z), std::move(short_cut));
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    BatchNormLayer::Gradients split{dy, dy};
    if (last_ != nullptr) {
      ASSIGN_OR_RETURN(split, last_->BackwardAdding(std::move(dy), saved));
    }
    dy = Tensor();
    ASSIGN_OR_RETURN(Tensor through_body, body_->Backward(std::move(split.dx), saved));
    ASSIGN_OR_RETURN(Tensor through_shortcut,
                     shortcut_->Backward(std::move(split.dresidual), saved));
    if (through_body.empty() || through_shortcut.empty()) return Tensor();
    return Sum(std::move(through_body), std::move(through_shortcut));
  }

  absl::Status ParametersChanged() override {
    RETURN_IF_ERROR(body_->ParametersChanged());
    return shortcut_->ParametersChanged();
  }

 private:
  // Returns a + b, in place if nobody else holds `a`.
  absl::StatusOr<Tensor> Sum(Tensor a, Tensor b) const {
    Tensor sum = a;
    if (a.buffer().use_count() > 2) {
      ASSIGN_OR_RETURN(sum, context_.NewTensor(a.shape()));
    }
    RETURN_IF_ERROR(ToStatus(context_.ops->Add(a.view(), b.view(), sum.view())));
    return sum;
  }

  const std::unique_ptr<Sequence> body_;
  const std::unique_ptr<BatchNormLayer> last_;
  const std::unique_ptr<Sequence> shortcut_;
  const LayerContext context_;
};

}  // namespace

std::unique_ptr<Layer> NewResidualLayer(std::unique_ptr<Sequence> body,
                                        std::unique_ptr<BatchNormLayer> last,
                                        std::unique_ptr<Sequence> shortcut,
                                        const LayerContext& context) {
  return std::make_unique<ResidualLayer>(std::move(body), std::move(last), std::move(shortcut),
                                         context);
}

}  // namespace thinwire
