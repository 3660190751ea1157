// The blocks between two cuts, built on one device: forward, backward, parameters.
//
// Nothing of a microbatch is kept in the segment: a schedule has several microbatches between
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

// One parameter or buffer in fp32 and PyTorch's layout, in device memory.
struct Parameter {
  ParameterSpec spec;
  Tensor value;
  Tensor gradient;  // same shape; empty for running statistics. Backward adds to it.
  // The value is the memory of the one that it is tied to, which alone is updated (ShareTiedValue).
  bool follows = false;
};

enum class Mode {
  kTrain,     // batch statistics; running statistics are updated; fills Saved
  kEvaluate,  // running statistics; Saved may be null; changes nothing
  // Like kEvaluate, but layers normalise by batch statistics, which become the running statistics
  // as they are (the variance unbiased): see recalibration.h.
  kRecalibrate
};

// Keys and values of the positions that sequences have had, of the attention layers that a pass
// goes through, and in training their gradients. One thread at a time.
class KeyValueCache {
 public:
  // The memory of the layer known by this address, made when it is first asked for.
  absl::StatusOr<Tensor> Of(const void* layer, Device* device, DType type, const Shape& shape) {
    Tensor& memory = layers_[layer];
    if (!memory.empty()) return memory;
    absl::StatusOr<Tensor> made = Tensor::Allocate(device, type, shape);
    if (made.ok()) memory = *made;
    return made;
  }
  // That of its gradients, fp32; zeros when it is first asked for.
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

// What kind of a forward pass over which samples. A mode alone says all there is to say where
// nothing is random.
struct Pass {
  Pass(Mode mode, uint64_t step = 0, int64_t first_sample = 0)
      : mode(mode), step(step), first_sample(first_sample) {}
  Mode mode;
  uint64_t step;         // of the run; from it and the samples' places follows what dropout drops
  int64_t first_sample;  // of the input, in its whole batch
  // The pass has been before: its results are equal, and running statistics stay.
  bool again = false;
  // Sequences a few positions at a time, in kEvaluate and kTrain: those of the input, fewer than
  // a sample's or as many, begin with `first_position`, and the cache holds what the attention
  // needs of the ones before them. In training it outlives the backward passes, which go over later
  // positions first.
  KeyValueCache* cache = nullptr;
  int64_t first_position = 0;
  // Token ids of the samples, int32 [batch, positions], for layers that read them anywhere in the
  // model (models/model.h, ReadsIds).
  Tensor ids;
};

class Layer;

// What BackwardWeights needs of one layer: its BackwardWeights' arguments.
struct WaitingWeights {
  Layer* layer = nullptr;
  Tensor x, dy;
};

// What Backward needs of one microbatch's Forward, in the order it was put there, and what
// BackwardWeights needs of its Backward. Freed with it.
class Saved {
 public:
  void Push(Tensor tensor) { tensors_.push_back(std::move(tensor)); }
  Tensor Pop() {
    Tensor tensor = std::move(tensors_.back());
    tensors_.pop_back();
    return tensor;
  }
  bool empty() const { return tensors_.empty(); }
  // In a segment that splits its backward pass: waits for BackwardWeights.
  void Defer(WaitingWeights weights) { waiting_.push_back(std::move(weights)); }
  // What waits, in the order of Backward; from then on nothing does.
  std::vector<WaitingWeights> TakeWaiting() { return std::exchange(waiting_, {}); }
  bool waits() const { return !waiting_.empty(); }
  // The Forward's, which Backward is about.
  const Pass& pass() const { return pass_; }
  void set_pass(const Pass& pass) { pass_ = pass; }
  // Bytes held, shared memory counted each time it stands here.
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
  // Backward leaves the gradients of the weights of products and convolutions to BackwardWeights
  // (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024: its B and W).
  bool splits_backward = false;
  // The last layer, a linear one, makes the model's logits, of which a row may be longer than there
  // are classes (Ops::RowOfLogits).
  bool ends_model = false;
};

// Whether a segment that ends in it may have `ends_model`: a model of one's own may end in any
// layer.
bool EndsLinear(const BlockSpec& block);

class Segment {
 public:
  virtual ~Segment() = default;

  // x: [batch, ...] of the first block's `in`, in the compute type; int32 for an embedding. With a
  // cache of any number of positions up to that.
  // Returns the last block's output, of a segment that ends the model with rows of as many elements
  // as suit the device, zeros behind the classes. Any batch size.
  virtual absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass& pass, Saved* saved) = 0;

  // dy: gradient of the loss with respect to Forward's result. Empties `saved`. Adds to the
  // parameters' gradients; returns dx, or an empty tensor without needs_input_gradient and for
  // token ids. With splits_backward `saved` then has what BackwardWeights needs: input and output's
  // gradient of each product and convolution (models/cost.h: waiting_elements).
  virtual absl::StatusOr<Tensor> Backward(const Tensor& dy, Saved* saved) = 0;

  // With splits_backward, later, in the order of the microbatches: adds to the gradients that
  // Backward has left, so that they have the bits of one that does not split. Empties `saved`.
  virtual absl::Status BackwardWeights(Saved* saved) = 0;

  // In model order; stable addresses.
  virtual absl::Span<Parameter> parameters() = 0;

  // To be called when values were written from outside (optimizer, checkpoint): makes the copies in
  // the compute type and in the kernels' own layouts anew.
  virtual absl::Status ParametersChanged() = 0;

  virtual absl::Status ClearGradients() = 0;
};

// Parameters start as f(init_seed, parameter name) and nothing else; a tied one as what it copies.
absl::StatusOr<std::unique_ptr<Segment>> BuildSegment(absl::Span<const BlockSpec> blocks,
                                                      const SegmentOptions& options);

}  // namespace thinwire
