#include "nn/layers/simple.h"

#include <utility>

#include "base/status.h"

namespace thinwire {
namespace {

class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerContext& context) : context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode mode, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->Relu(x.view(), y.view())));
    if (mode == Mode::kTrain) saved->Push(y);
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor y = saved->Pop();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(dy.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->ReluBackward(y.view(), dy.view(), dx.view())));
    return dx;
  }

 private:
  const LayerContext context_;
};

class MaxPoolLayer final : public Layer {
 public:
  MaxPoolLayer(const LayerSpec& spec, const LayerContext& context)
      : out_(spec.out), pool_{spec.kernel, spec.stride, spec.padding}, context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode mode, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(out_.WithBatch(x.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->MaxPool(pool_, x.view(), y.view())));
    if (mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor x = saved->Pop();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->MaxPoolBackward(pool_, x.view(), dy.view(), dx.view())));
    return dx;
  }

 private:
  const Shape out_;
  const PoolSpec pool_;
  const LayerContext context_;
};

class MaxoutLayer final : public Layer {
 public:
  MaxoutLayer(const LayerSpec& spec, const LayerContext& context)
      : out_(spec.out), group_(spec.group), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode mode, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(out_.WithBatch(x.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->Maxout(group_, x.view(), y.view())));
    if (mode == Mode::kTrain) saved->Push(std::move(x));
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor x = saved->Pop();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->MaxoutBackward(group_, x.view(), dy.view(), dx.view())));
    return dx;
  }

 private:
  const Shape out_;
  const int64_t group_;
  const LayerContext context_;
};

class GlobalAvgPoolLayer final : public Layer {
 public:
  GlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context)
      : in_(spec.in), out_(spec.out), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode, Saved*) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(out_.WithBatch(x.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->GlobalAvgPool(x.view(), y.view())));
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved*) override {
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(in_.WithBatch(dy.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->GlobalAvgPoolBackward(dy.view(), dx.view())));
    return dx;
  }

 private:
  const Shape in_, out_;
  const LayerContext context_;
};

class FlattenLayer final : public Layer {
 public:
  FlattenLayer(const LayerSpec& spec, const LayerContext& context)
      : in_(spec.in), out_(spec.out), context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, Mode, Saved*) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(out_.WithBatch(x.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->ToChannelsFirst(x.view(), y.view())));
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved*) override {
    ASSIGN_OR_RETURN(Tensor dx, context_.NewTensor(in_.WithBatch(dy.shape()[0])));
    RETURN_IF_ERROR(ToStatus(context_.ops->ToChannelsLast(dy.view(), dx.view())));
    return dx;
  }

 private:
  const Shape in_, out_;
  const LayerContext context_;
};

}  // namespace

std::unique_ptr<Layer> NewReluLayer(const LayerContext& context) {
  return std::make_unique<ReluLayer>(context);
}
std::unique_ptr<Layer> NewMaxPoolLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<MaxPoolLayer>(spec, context);
}
std::unique_ptr<Layer> NewMaxoutLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<MaxoutLayer>(spec, context);
}
std::unique_ptr<Layer> NewGlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<GlobalAvgPoolLayer>(spec, context);
}
std::unique_ptr<Layer> NewFlattenLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<FlattenLayer>(spec, context);
}

}  // namespace thinwire
