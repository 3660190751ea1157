// Layers that run one after the other.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "nn/layers/layer.h"

namespace thinwire {

class Sequence final : public Layer {
 public:
  void Append(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  bool empty() const { return layers_.empty(); }

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    for (const auto& layer : layers_) {
      ASSIGN_OR_RETURN(x, layer->Forward(std::move(x), pass, saved));
    }
    return x;
  }

  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      ASSIGN_OR_RETURN(dy, (*layer)->Backward(std::move(dy), saved));
    }
    return dy;
  }

  absl::Status ParametersChanged() override {
    for (const auto& layer : layers_) RETURN_IF_ERROR(layer->ParametersChanged());
    return absl::OkStatus();
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace thinwire
