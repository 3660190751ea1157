// Layers without parameters.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "base/status.h"
#include "models/model.h"
#include "nn/layers/layer.h"

namespace thinwire {

// y = max(x, 0). It keeps y, which is the next layer's x anyway.
class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerContext& context) : context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->Relu(x.view(), y.view())));
    if (pass.mode == Mode::kTrain) saved->Push(y, Needed::kSigns);
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

// An operation of the backend whose result may have another shape than x.
struct Operation {
  std::function<Error(const TensorView& x, const TensorView& y)> forward;
  std::function<Error(const TensorView& x, const TensorView& dy, const TensorView& dx)> backward;
  bool keeps_x;                     // if false, backward's x is empty
  Needed needed = Needed::kValues;  // of x
};

class OperationLayer final : public Layer {
 public:
  OperationLayer(const LayerSpec& spec, const LayerContext& context, Operation operation)
      : in_(spec.in), out_(spec.out), context_(context), operation_(std::move(operation)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(ToStatus(operation_.forward(x.view(), y.view())));
    if (pass.mode == Mode::kTrain && operation_.keeps_x) {
      saved->Push(std::move(x), operation_.needed);
    }
    return y;
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) override {
    const Tensor x = operation_.keeps_x ? saved->Pop() : Tensor();
    ASSIGN_OR_RETURN(Tensor dx, context_.NewResult(in_, dy, saved->pass()));
    RETURN_IF_ERROR(ToStatus(operation_.backward(x.view(), dy.view(), dx.view())));
    return dx;
  }

 private:
  const Shape in_, out_;
  const LayerContext context_;
  const Operation operation_;
};

// Make a layer of two of the backend's functions, whose arguments begin with `of`. Keeping keeps x
// for the second, of which it says what is needed; Plain keeps nothing.
template <typename Forward, typename Backward, typename... Of>
std::unique_ptr<Layer> Keeping(const LayerSpec& spec, const LayerContext& context, Needed needed,
                               Forward forward, Backward backward, const Of&... of) {
  return std::make_unique<OperationLayer>(
      spec, context,
      Operation{[=](const TensorView& x, const TensorView& y) {
                  return (context.ops->*forward)(of..., x, y);
                },
                [=](const TensorView& x, const TensorView& dy, const TensorView& dx) {
                  return (context.ops->*backward)(of..., x, dy, dx);
                },
                /*keeps_x=*/true, needed});
}
template <typename Forward, typename Backward>
std::unique_ptr<Layer> Plain(const LayerSpec& spec, const LayerContext& context, Forward forward,
                             Backward backward) {
  return std::make_unique<OperationLayer>(
      spec, context,
      Operation{
          [=](const TensorView& x, const TensorView& y) { return (context.ops->*forward)(x, y); },
          [=](const TensorView&, const TensorView& dy, const TensorView& dx) {
            return (context.ops->*backward)(dy, dx);
          },
          /*keeps_x=*/false});
}

// A layer whose result is x's memory, in another shape.
class SequenceLayer final : public Layer {
 public:
  explicit SequenceLayer(const LayerSpec& spec) : in_(spec.in), out_(spec.out) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& /*pass*/, Saved* /*saved*/) override {
    return Tensor(x.buffer(), x.dtype(), out_.WithBatch(x.shape()[0]));
  }
  absl::StatusOr<Tensor> Backward(Tensor dy, Saved* /*saved*/) override {
    return Tensor(dy.buffer(), dy.dtype(), in_.WithBatch(dy.shape()[0]));
  }

 private:
  const Shape in_, out_;
};

// Returns the tensor with all of a sample in one row.
inline TensorView SamplesOf(const TensorView& x) {
  TensorView rows = x;
  rows.rank = 2;
  rows.dims[1] = x.dims[0] == 0 ? 0 : x.elements() / x.dims[0];
  return rows;
}

// Makes a layer for kFirst: the first position is what a row of the whole sample begins with.
inline std::unique_ptr<Layer> NewFirstLayer(const LayerSpec& spec, const LayerContext& context) {
  return std::make_unique<OperationLayer>(
      spec, context,
      Operation{[=](const TensorView& x, const TensorView& y) {
                  return context.ops->Resize(SamplesOf(x), y);
                },
                [=](const TensorView&, const TensorView& dy, const TensorView& dx) {
                  return context.ops->Resize(dy, SamplesOf(dx));
                },
                /*keeps_x=*/false});
}

}  // namespace thinwire
