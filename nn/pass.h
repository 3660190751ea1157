// One pass over a part of the network: what kind it is, and what it keeps for the passes behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

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
  size_t bytes() const {
    size_t bytes = 0;
    for (const Tensor& tensor : tensors_) bytes += tensor.bytes();
    for (const WaitingWeights& weights : waiting_) bytes += weights.x.bytes() + weights.dy.bytes();
    return bytes;
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<WaitingWeights> waiting_;
  Pass pass_ = Mode::kTrain;
};

}  // namespace thinwire
