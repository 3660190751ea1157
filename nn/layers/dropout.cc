#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "nn/layers/kinds.h"

namespace thinwire {
namespace {

class DropoutLayer final : public Layer {
 public:
  DropoutLayer(const LayerSpec& spec, const LayerContext& context)
      : name_(spec.name), rate_(static_cast<float>(spec.dropout)), context_(context) {}

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
    a.x = x.view();
    a.y = y.view();
    RETURN_IF_ERROR(ToStatus(context_.ops->Drop(a)));
    return y;
  }

  const std::string name_;
  const float rate_;
  const LayerContext context_;
};

}  // namespace

uint64_t DropoutKey(uint64_t seed, const std::string& name, uint64_t step) {
  return RandomKey(RandomKey(seed, name), step);
}

std::unique_ptr<Layer> NewDropoutLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<DropoutLayer>(spec, context);
}

}  // namespace thinwire
