// One step of a segment's forward and backward pass, for any backend.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "nn/expanded_weight.h"
#include "nn/ops.h"
#include "nn/partial_sums.h"
#include "nn/pass.h"
#include "tensor/tensor.h"

namespace thinwire {

// An activation or gradient, or two whose sum it is; nobody has added them up yet.
struct Summands {
  Tensor x;
  Tensor addend;  // empty: x is all of it
};

// The device, ops and type with which a layer computes.
struct LayerContext {
  Device* device = nullptr;
  Ops* ops = nullptr;
  DType compute = DType::kF32;
  uint64_t dropout_seed = 0;
  bool splits_backward = false;        // as in SegmentOptions
  PartialSums* sums = nullptr;         // adds up what tensor-parallel parts have made
  ExpandedWeight* expanded = nullptr;  // for weights that are held in few bits

  // Allocates the result of a layer.
  absl::StatusOr<Tensor> NewTensor(const Shape& shape) const {
    return Tensor::Allocate(device, compute, shape);
  }
  // Allocates the result for input x, if that of a whole sample has shape `out`; x may be a
  // gradient. With a cache the result has as many positions as x.
  absl::StatusOr<Tensor> NewResult(const Shape& out, const Tensor& x, const Pass& pass) const {
    const Shape shape = out.WithBatch(x.shape()[0]);
    return NewTensor(pass.cache == nullptr ? shape : shape.With(1, x.shape()[1]));
  }
  // Returns memory for an elementwise result of x: x itself if only the caller holds it, otherwise
  // new memory.
  absl::StatusOr<Tensor> InPlaceOrNew(const Tensor& x) const {
    if (x.buffer().use_count() == 1) return x;
    return NewTensor(x.shape());
  }
  // Adds up, in the memory of `of.x` if only the caller holds it.
  absl::StatusOr<Tensor> Sum(Summands of) const {
    if (of.addend.empty()) return std::move(of.x);
    ASSIGN_OR_RETURN(Tensor sum, InPlaceOrNew(of.x));
    RETURN_IF_ERROR(ToStatus(ops->Add(of.x.view(), of.addend.view(), sum.view())));
    return sum;
  }
};

// Kinds of change to parameters: by the optimizer in its step, or by anybody in any way.
enum class ChangedBy : uint8_t { kAnybody, kOptimizer };

// A layer of a segment. Tensors are passed by value: a layer that is done with its input drops it,
// and the next layer reuses the memory. A layer keeps what belongs to a microbatch only in Saved,
// where Backward pops in reverse order what Forward pushed.
class Layer {
 public:
  virtual ~Layer() = default;

  // Returns y. `saved` may be null when evaluating; otherwise it has the same pass.
  virtual absl::StatusOr<Tensor> Forward(Tensor x, const Pass& pass, Saved* saved) = 0;

  // Returns whether ForwardSum takes a sum that is not computed yet.
  virtual bool takes_sums() const { return false; }
  // Does what Forward does, with its bits, but may add x up in the layer's own pass, and may leave
  // its last addition to who follows. Without takes_sums, x has no addend.
  virtual absl::StatusOr<Summands> ForwardSum(Summands x, const Pass& pass, Saved* saved) {
    ASSIGN_OR_RETURN(Tensor y, Forward(std::move(x.x), pass, saved));
    return Summands{std::move(y), Tensor()};
  }

  // Adds to the gradients of the layer's parameters and returns dx. If the layer was built without
  // need of dx, it is empty, or is returned nevertheless where it costs little.
  virtual absl::StatusOr<Tensor> Backward(Tensor dy, Saved* saved) = 0;

  // Adds to the gradients of the layer's weights, in a segment that splits its backward pass.
  // Backward has left that out by Saved::Defer.
  virtual absl::Status BackwardWeights(const Tensor& /*x*/, const Tensor& /*dy*/) {
    return absl::OkStatus();
  }

  // Returns whether BackwardSum takes a gradient that is not added up yet.
  virtual bool takes_gradient_sums() const { return false; }
  // Does what Backward does, as ForwardSum does what Forward does.
  virtual absl::StatusOr<Summands> BackwardSum(Summands dy, Saved* saved) {
    ASSIGN_OR_RETURN(Tensor dx, Backward(std::move(dy.x), saved));
    return Summands{std::move(dx), Tensor()};
  }

  // See Segment's ParametersChanged and ParametersUpdated.
  virtual absl::Status ParametersChanged(ChangedBy /*by*/) { return absl::OkStatus(); }
};

}  // namespace thinwire
