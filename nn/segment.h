// The blocks between two cuts, built on one device: forward, backward, parameters.
//
// A segment keeps nothing of a microbatch. A schedule has several microbatches between their
// Forward and their Backward, and each has its own Saved. Not thread-safe.
// their Forward and their Backward, and each brings its own Saved. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/cost.h"
#include "models/model.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

// A parameter or buffer in fp32 and PyTorch's layout, in device memory.
struct Parameter {
  ParameterSpec spec;
  Tensor value;
  Tensor gradient;  // same shape, Backward adds to it; empty for running statistics
  // True if the value shares the memory of the parameter that it is tied to, which alone is updated
  // (ShareTiedValue).
  bool follows = false;
};

enum class Mode {
  kTrain,     // batch statistics; running statistics are updated; fills Saved
  kEvaluate,  // running statistics; Saved may be null; changes nothing
  // Like kEvaluate, but layers normalise by batch statistics. These replace the running statistics
  // as they are, with unbiased variance: see recalibration.h.
  kRecalibrate
};

// Keys and values of the past positions of sequences, for each attention layer that a pass goes
// through; in training also their gradients. Not thread-safe.
class KeyValueCache {
 public:
  // Returns the memory of the layer with this address, which is allocated on first use.
  absl::StatusOr<Tensor> Of(const void* layer, Device* device, DType type, const Shape& shape) {
    Tensor& memory = layers_[layer];
    if (!memory.empty()) return memory;
    absl::StatusOr<Tensor> made = Tensor::Allocate(device, type, shape);
    if (made.ok()) memory = *made;
    return made;
  }
  // Returns the memory of its gradients, fp32; zeros on first use.
  absl::StatusOr<Tensor> GradientOf(const void* layer, Device* device, Ops* ops,
                                    const Shape& shape) {
    Tensor& memory = gradients_[layer];
    if (!memory.empty()) return memory;
    absl::StatusOr<Tensor> made = Tensor::Allocate(device, DType::kF32, shape);
    if (!made.ok()) return made;
    const absl::Status cleared =
        ToStatus(ops->Zero(static_cast<float*>(made->data()), made->elements()));
    if (!cleared.ok()) return cleared;
    return memory = *made;
  }

 private:
  std::map<const void*, Tensor> layers_, gradients_;
};

// The kind of a forward pass, and which samples it has. A mode alone is enough where nothing is
// random.
struct Pass {
  Pass(Mode mode, uint64_t step = 0, int64_t first_sample = 0)
      : mode(mode), step(step), first_sample(first_sample) {}
  Mode mode;
  uint64_t step;         // of the run; with a sample's place it decides what dropout drops
  int64_t first_sample;  // place of the first input sample in its whole batch
  // True if the pass is repeated: it gives equal results and must leave running statistics as they
  // are.
  bool again = false;
  // Set if sequences come a few positions at a time, in kEvaluate and kTrain. The input then has
  // the positions from `first_position` on, up to a whole sample. The cache holds what attention
  // needs of the positions before them. In training it must outlive the backward passes, which go
  // over later positions first.
  KeyValueCache* cache = nullptr;
  int64_t first_position = 0;
  // Token ids of the samples, int32 [batch, positions], for layers that read them anywhere in the
  // model (models/model.h, ReadsIds).
  Tensor ids;
};

class Layer;

// The arguments of a layer's BackwardWeights, kept for later.
struct WaitingWeights {
  Layer* layer = nullptr;
  Tensor x, dy;
};

// What Backward needs of one microbatch's Forward, in the order in which it was pushed, and what
// BackwardWeights needs of its Backward. All of it is freed with this object.
class Saved {
 public:
  void Push(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  Tensor Pop() {
    Tensor tensor = std::move(tensors_.back());
    tensors_.pop_back();
    return tensor;
  }
  bool empty() const { return tensors_.empty(); }
  // Keeps `weights` for BackwardWeights, in a segment that splits its backward pass.
  void Defer(WaitingWeights weights) { waiting_.push_back(std::move(weights)); }
  // Removes and returns what was deferred, in the order of Backward.
  std::vector<WaitingWeights> TakeWaiting() { return std::exchange(waiting_, {}); }
  bool waits() const { return !waiting_.empty(); }
  // The pass of the Forward that Backward belongs to.
  const Pass& pass() const { return pass_; }
  void set_pass(const Pass& pass) { pass_ = pass; }
  // Returns the bytes held. Memory that stands here several times is counted each time.
  size_t bytes() const;

 private:
  std::vector<Tensor> tensors_;
  std::vector<WaitingWeights> waiting_;
  Pass pass_ = Mode::kTrain;
};

struct SegmentOptions {
  Device* device = nullptr;     // outlives the segment
  Ops* ops = nullptr;           // of the same backend; outlives the segment
  DType compute = DType::kF32;  // of activations and gradients; parameters stay fp32
  uint64_t init_seed = 0;
  uint64_t dropout_seed = 0;
  Recompute recompute = Recompute::kNone;  // models/cost.h says which blocks run forward again
  bool needs_input_gradient = true;        // false for the segment that reads the data
  // Backward leaves the weight gradients of products and convolutions to BackwardWeights (B and W
  // in Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024).
  bool splits_backward = false;
  // The last layer is linear and makes the model's logits. Their rows may be longer than the number
  // of classes (Ops::RowOfLogits).
  bool ends_model = false;
};

// Returns whether a segment that ends in `block` may have `ends_model`. A user's own model may end
// in any layer.
bool EndsLinear(const BlockSpec& block);

class Segment {
 public:
  virtual ~Segment() = default;

  // Runs the forward pass. x: [batch, ...] of the first block's `in`, in the compute type, or int32
  // for an embedding; any batch size. With a cache it may have fewer positions. Returns the last
  // block's output. A segment that ends the model returns rows as long as suits the device, with
  // zeros behind the classes.
  virtual absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass& pass, Saved* saved) = 0;

  // Runs the backward pass and empties `saved`. dy is the gradient of the loss with respect to
  // Forward's result. Adds to the parameters' gradients. Returns dx; it is empty without
  // needs_input_gradient and for token ids. With splits_backward, `saved` then has what
  // BackwardWeights needs: input and output gradient of each product and convolution
  // (models/cost.h: waiting_elements).
  virtual absl::StatusOr<Tensor> Backward(const Tensor& dy, Saved* saved) = 0;

  // Adds the gradients that Backward has left out, with splits_backward, and empties `saved`.
  // Called later, in the order of the microbatches, it gives the same bits as a Backward that does
  // not split.
  virtual absl::Status BackwardWeights(Saved* saved) = 0;

  // Returns the parameters in model order; their addresses do not change.
  virtual absl::Span<Parameter> parameters() = 0;

  // Recomputes the copies in the compute type and in the kernels' own layouts. Must be called after
  // values were written from outside (optimizer, checkpoint).
  virtual absl::Status ParametersChanged() = 0;

  virtual absl::Status ClearGradients() = 0;
};

// Builds a segment. A parameter's initial value depends only on init_seed and its name; a tied one
// starts like the one that it copies.
absl::StatusOr<std::unique_ptr<Segment>> BuildSegment(absl::Span<const BlockSpec> blocks,
                                                      const SegmentOptions& options);

}  // namespace thinwire
