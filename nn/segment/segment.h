// The blocks between two cuts, built on one device: forward, backward, parameters.
//
// Nothing of a microbatch is kept in the segment: a schedule has several microbatches between
// their Forward and their Backward, and each brings its own Saved. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "models/cost.h"
#include "models/model.h"
#include "models/tied_weight.h"
#include "nn/ops.h"
#include "nn/parameters.h"
#include "nn/pass.h"
#include "tensor/tensor.h"

namespace thinwire {

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

// Lets both copies of a tied weight (models/tied_weight.h) that one segment holds be one memory, so
// that it is updated once. The segment's owner calls it before anything else is made of it.
absl::Status ShareTiedValue(const TiedWeight& tied, Segment* segment);

}  // namespace thinwire
