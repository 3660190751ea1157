// The blocks between two cuts, built on one device: forward, backward, parameters.
//
// A segment keeps nothing of a microbatch. A schedule has several microbatches between their
// Forward and their Backward, and each has its own Saved. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/cost.h"
#include "models/keeping.h"
#include "models/model.h"
#include "models/tied_weight.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "nn/partial_sums.h"
#include "nn/pass.h"
#include "nn/stash.h"
#include "tensor/tensor.h"

namespace thinwire {

struct SegmentOptions {
  Device* device = nullptr;               // outlives the segment
  Ops* ops = nullptr;                     // of the same backend; outlives the segment
  DType compute = DType::kF32;            // of activations and gradients; parameters stay fp32
  std::optional<uint64_t> init_seed = 0;  // not set: parameters are zeros, as others will come
  uint64_t dropout_seed = 0;
  Recompute recompute = Recompute::kNone;  // models/cost.h says which blocks run forward again
  // False where nothing before the segment is trained. What stands before its first trained block
  // then keeps nothing in Forward, and Backward ends there.
  bool needs_input_gradient = true;
  // Backward leaves the weight gradients of products and convolutions to BackwardWeights (B and W
  // in Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024).
  bool splits_backward = false;
  // The last layer is linear and makes the model's logits. Their rows may be longer than the number
  // of classes (Ops::RowOfLogits).
  bool ends_model = false;
  // Adds up what tensor-parallel parts have made; outlives the segment. Null: all parts are here,
  // and are added up as they are.
  PartialSums* sums = nullptr;
  // Has what the trained blocks keep between their passes; outlives the segment. Null: it is kept
  // as it is.
  Stash* stash = nullptr;
  // What each block does, in place of `recompute`; only those that put away what they keep have it
  // in `stash`. Empty: all do as is said above.
  std::vector<BlockKeeping> keeping = {};
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
  // values were written from outside (a checkpoint, statistics).
  virtual absl::Status ParametersChanged() = 0;
  // Does the same after nothing but a step of the parameters' optimizer, but for the copies that
  // the step has written (Parameter::narrow_is_updated).
  virtual absl::Status ParametersUpdated() = 0;

  virtual absl::Status ClearGradients() = 0;
};

// Builds a segment. A parameter's initial value depends only on init_seed and its name; a tied one
// starts like the one that it copies.
absl::StatusOr<std::unique_ptr<Segment>> BuildSegment(absl::Span<const BlockSpec> blocks,
                                                      const SegmentOptions& options);

// Makes the two copies of a tied weight (models/tied_weight.h) in one segment share memory, so that
// it is updated once. The segment's owner calls it before anything else uses the parameters.
absl::Status ShareTiedValue(const TiedWeight& tied, Segment* segment);

}  // namespace thinwire
