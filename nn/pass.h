// One pass over a part of the network: what kind it is, and what it keeps for the passes behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nn/ops.h"
#include "tensor/tensor.h"

namespace thinwire {

enum class Mode {
  kTrain,     // batch statistics; running statistics are updated; fills Saved
  kEvaluate,  // running statistics; Saved may be null; changes nothing
  // Like kEvaluate, but layers normalise by batch statistics. These replace the running statistics
  // as they are, with unbiased variance: see recalibration.h.
  kRecalibrate
};

// Documents that are packed into samples and do not see one another: int32 [batch, positions], as a
// pass's input has them. Both are empty where each sample is one document.
struct PackedDocuments {
  Tensor first;  // the position of the sample at which each position's document begins
  Tensor place;  // each position's place in its document, from 0

  bool empty() const { return first.empty(); }
  // Checks that they are those of the first two axes of a tensor of this shape.
  absl::Status Check(const Shape& shape) const {
    const Shape wanted = {shape[0], shape[1]};
    if (first.shape() == wanted && place.shape() == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "documents of positions ", first.shape().ToString(), ", want ", wanted.ToString()));
  }
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
  PackedDocuments documents;

  // Checks that there are ids for the first two axes of a tensor of this shape.
  absl::Status CheckIds(const Shape& shape) const {
    const Shape wanted = {shape[0], shape[1]};
    if (!ids.empty() && ids.shape() == wanted) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("token ids ", ids.empty() ? "are missing" : ids.shape().ToString(), ", want ",
                     wanted.ToString()));
  }
};

class Layer;

// The arguments of a layer's BackwardWeights, kept for later.
struct WaitingWeights {
  Layer* layer = nullptr;
  Tensor x, dy;
};

// Precision in which Backward needs a tensor, and so what a stash (stash.h) may change of it.
enum class Needed : uint8_t {
  kValues,  // values, near which others do nearly as well
  kSigns,   // of each element, whether it is above zero; none is below
  kExact    // the bits: statistics, normalisers, what a greatest element is sought in
};

// A tensor that a forward pass keeps.
struct KeptTensor {
  Tensor tensor;
  Needed needed = Needed::kValues;
};

// What a stash has made of the tensors of one block.
class StashedTensors {
 public:
  virtual ~StashedTensors() = default;
  // Returns the bytes that are held for them.
  virtual size_t bytes() const = 0;
};

// Tensors that Backward needs of one microbatch's Forward, in the order in which they were pushed,
// and that BackwardWeights needs of its Backward. All of it is freed with this object.
class Saved {
 public:
  void Push(Tensor tensor, Needed needed = Needed::kValues) {
    tensors_.push_back({std::move(tensor), needed});
  }
  Tensor Pop() {
    Tensor tensor = std::move(tensors_.back().tensor);
    tensors_.pop_back();
    return tensor;
  }
  // Remove and return all tensors, and give them back.
  std::vector<KeptTensor> TakeTensors() { return std::exchange(tensors_, {}); }
  void PutTensors(std::vector<KeptTensor> tensors) { tensors_ = std::move(tensors); }
  // Keep what a stash has made of a block's tensors, and give back what was kept last.
  void PushStashed(std::shared_ptr<StashedTensors> stashed) {
    stashed_.push_back(std::move(stashed));
  }
  std::shared_ptr<StashedTensors> PopStashed() {
    std::shared_ptr<StashedTensors> stashed = std::move(stashed_.back());
    stashed_.pop_back();
    return stashed;
  }
  bool empty() const { return tensors_.empty() && stashed_.empty(); }
  // Keeps `weights` for BackwardWeights, in a segment that splits its backward pass.
  void Defer(WaitingWeights weights) { waiting_.push_back(std::move(weights)); }
  // Removes and returns what was deferred, in the order of Backward.
  std::vector<WaitingWeights> TakeWaiting() { return std::exchange(waiting_, {}); }
  bool waits() const { return !waiting_.empty(); }
  // The pass of the Forward that Backward belongs to.
  const Pass& pass() const { return pass_; }
  void set_pass(const Pass& pass) { pass_ = pass; }
  // Returns the bytes held. Memory that stands here several times is counted each time.
  size_t bytes() const {
    size_t bytes = 0;
    for (const KeptTensor& kept : tensors_) bytes += kept.tensor.bytes();
    for (const auto& stashed : stashed_) bytes += stashed->bytes();
    for (const WaitingWeights& weights : waiting_) bytes += weights.x.bytes() + weights.dy.bytes();
    return bytes;
  }

 private:
  std::vector<KeptTensor> tensors_;
  std::vector<std::shared_ptr<StashedTensors>> stashed_;
  std::vector<WaitingWeights> waiting_;
  Pass pass_ = Mode::kTrain;
};

}  // namespace thinwire
