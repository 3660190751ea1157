#include <functional>
#include <utility>

#include "base/status.h"
#include "nn/layers/kinds.h"

namespace thinwire {
namespace {

class ReluLayer final : public Layer {
 public:
  explicit ReluLayer(const LayerContext& context) : context_(context) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewTensor(x.shape()));
    RETURN_IF_ERROR(ToStatus(context_.ops->Relu(x.view(), y.view())));
    if (pass.mode == Mode::kTrain) saved->Push(y);
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
  bool keeps_x;  // if false, backward's x is empty
};

class OperationLayer final : public Layer {
 public:
  OperationLayer(const LayerSpec& spec, const LayerContext& context, Operation operation)
      : in_(spec.in), out_(spec.out), context_(context), operation_(std::move(operation)) {}

  absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) override {
    ASSIGN_OR_RETURN(Tensor y, context_.NewResult(out_, x, pass));
    RETURN_IF_ERROR(ToStatus(operation_.forward(x.view(), y.view())));
    if (pass.mode == Mode::kTrain && operation_.keeps_x) saved->Push(std::move(x));
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
// for the second.
template <typename Forward, typename Backward, typename... Of>
std::unique_ptr<Layer> Keeping(const LayerSpec& spec, const LayerContext& context, Forward forward,
                               Backward backward, const Of&... of) {
  return std::make_unique<OperationLayer>(
      spec, context,
      Operation{[=](const TensorView& x, const TensorView& y) {
                  return (context.ops->*forward)(of..., x, y);
                },
                [=](const TensorView& x, const TensorView& dy, const TensorView& dx) {
                  return (context.ops->*backward)(of..., x, dy, dx);
                },
                /*keeps_x=*/true});
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
TensorView SamplesOf(const TensorView& x) {
  TensorView rows = x;
  rows.rank = 2;
  rows.dims[1] = x.dims[0] == 0 ? 0 : x.elements() / x.dims[0];
  return rows;
}

}  // namespace

std::unique_ptr<Layer> NewReluLayer(const LayerContext& context) {
  return std::make_unique<ReluLayer>(context);
}

std::unique_ptr<Layer> NewMaxPoolLayer(const LayerSpec& spec, const LayerContext& context) {
  const PoolSpec pool{spec.kernel, spec.stride, spec.padding};
  return Keeping(spec, context, &Ops::MaxPool, &Ops::MaxPoolBackward, pool);
}

std::unique_ptr<Layer> NewMaxoutLayer(const LayerSpec& spec, const LayerContext& context) {
  return Keeping(spec, context, &Ops::Maxout, &Ops::MaxoutBackward, spec.group);
}

std::unique_ptr<Layer> NewPointwiseLayer(Pointwise function, const LayerSpec& spec,
                                         const LayerContext& context) {
  return Keeping(spec, context, &Ops::Apply, &Ops::ApplyBackward, function);
}

std::unique_ptr<Layer> NewSwigluLayer(const LayerSpec& spec, const LayerContext& context) {
  return Keeping(spec, context, &Ops::Swiglu, &Ops::SwigluBackward);
}

std::unique_ptr<Layer> NewGlobalAvgPoolLayer(const LayerSpec& spec, const LayerContext& context) {
  return Plain(spec, context, &Ops::GlobalAvgPool, &Ops::GlobalAvgPoolBackward);
}

std::unique_ptr<Layer> NewResizeLayer(const LayerSpec& spec, const LayerContext& context) {
  return Plain(spec, context, &Ops::Resize, &Ops::Resize);
}

std::unique_ptr<Layer> NewSequenceLayer(const LayerSpec& spec) {
  return std::make_unique<SequenceLayer>(spec);
}

// The first position is what a row of the whole sample begins with.
std::unique_ptr<Layer> NewFirstLayer(const LayerSpec& spec, const LayerContext& context) {
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

std::unique_ptr<Layer> NewFlattenLayer(const LayerSpec& spec, const LayerContext& context) {
  return Plain(spec, context, &Ops::ToChannelsFirst, &Ops::ToChannelsLast);
}

}  // namespace thinwire
