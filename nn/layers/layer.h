// A step of a segment's forward and backward pass, above any backend.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "nn/pass.h"
#include "tensor/tensor.h"

namespace thinwire {

// Where and in what type a layer computes.
struct LayerContext {
  Device* device = nullptr;
  Ops* ops = nullptr;
  DType compute = DType::kF32;
  uint64_t dropout_seed = 0;
  bool splits_backward = false;  // SegmentOptions'

  // A tensor for a layer's result.
  absl::StatusOr<Tensor> NewTensor(const Shape& shape) const {
    return Tensor::Allocate(device, compute, shape);
  }
  // The same for that of x, where a whole sample's is `out`; x may be a gradient too.
  absl::StatusOr<Tensor> NewResult(const Shape& out, const Tensor& x, const Pass& pass) const {
    const Shape shape = out.WithBatch(x.shape()[0]);
    return NewTensor(pass.cache == nullptr ? shape : shape.With(1, x.shape()[1]));
  }
  // The same for an elementwise result of x: x itself where only the caller, and nobody else,
  // holds it.
  absl::StatusOr<Tensor> InPlaceOrNew(const Tensor& x) const {
    if (x.buffer().use_count() == 1) return x;
    return NewTensor(x.shape());
  }
};

// Tensors come by value: a layer that is done with its input lets go of it, and the memory serves
// the next layer. Layers keep nothing of a microbatch but in Saved, where Backward pops what
// Forward pushed, in reverse order.
class Layer {
 public:
  virtual ~Layer() = default;

  // `saved` may be null when evaluating; else it has the same pass.
  virtual absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) = 0;

  // Adds to the gradients of the layer's parameters and returns dx. dx is empty when the layer was
  // built without need of it; layers for which it costs little return it nevertheless.
  virtual absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) = 0;

  // What Backward leaves out, by Saved::Defer, in a segment that splits its backward pass: adds to
  // the gradients of the layer's weights.
  virtual absl::Status BackwardWeights(const Tensor& /*x*/, const Tensor& /*dy*/) {
    return absl::OkStatus();
  }

  // See Segment::ParametersChanged.
  virtual absl::Status ParametersChanged() { return absl::OkStatus(); }
};

}  // namespace thinwire
