#include "nn/segment/segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "models/frozen.h"
#include "nn/expanded_weight.h"
#include "nn/layers/build.h"
#include "nn/layers/forward_only.h"
#include "nn/layers/recomputed.h"
#include "nn/layers/sequence.h"
#include "nn/layers/stashed.h"
#include "nn/newton_schulz.h"
#include "nn/parameters.h"
#include "nn/sums_in_memory.h"
#include "nn/within.h"

namespace thinwire {
namespace {

bool TakesIds(const BlockSpec& block) {
  return !block.layers.empty() && block.layers.front().kind == LayerKind::kEmbedding;
}

// Returns the shape of a sample of the last block's output, as it is in memory.
Shape ResultOf(const BlockSpec& last, const SegmentOptions& options) {
  const int axis = last.out.rank() - 1;
  return options.ends_model ? last.out.With(axis, options.ops->RowOfLogits(last.out[axis]))
                            : last.out;
}

class BuiltSegment final : public Segment {
 public:
  BuiltSegment(absl::Span<const BlockSpec> blocks, const SegmentOptions& options,
               std::vector<Parameter> parameters)
      : name_(blocks.front().name),
        in_(blocks.front().in),
        in_type_(TakesIds(blocks.front()) ? DType::kI32 : options.compute),
        out_(ResultOf(blocks.back(), options)),
        options_(options),
        sums_(options.ops),
        expanded_(options.device, options.ops, options.compute),
        context_{options.device,
                 options.ops,
                 options.compute,
                 options.dropout_seed,
                 options.splits_backward,
                 options.sums != nullptr ? options.sums : &sums_,
                 &expanded_},
        parameters_(std::move(parameters)),
        layers_(context_) {}

  absl::Status Build(absl::Span<const BlockSpec> blocks) {
    RETURN_IF_ERROR(expanded_.Reserve(parameters_));
    bool needs_dx = options_.needs_input_gradient;
    for (const BlockSpec& block : blocks) {
      const bool makes_logits = options_.ends_model && &block == &blocks.back();
      const BlockKeeping keeping = KeepingOf(block, static_cast<size_t>(&block - blocks.data()));
      ASSIGN_OR_RETURN(auto layers, BuildLayers(block.layers, needs_dx, absl::MakeSpan(parameters_),
                                                context_, makes_logits));
      if (!needs_dx && IsFrozen(block)) {
        layers_.Append(std::make_unique<ForwardOnlyLayer>(std::move(layers)));
      } else {
        AppendTrained(block, keeping, std::move(layers));
      }
      needs_dx = needs_dx || !IsFrozen(block);
    }
    return ParametersChanged();
  }

  absl::StatusOr<Tensor> Forward(const Tensor& x, const Pass& pass, Saved* saved) override {
    RETURN_IF_ERROR(Check("x", x, SampleOf(in_, x, pass), in_type_));
    if (saved != nullptr) saved->set_pass(pass);
    return layers_.Forward(x, pass, saved);
  }

  absl::StatusOr<Tensor> Backward(const Tensor& dy, Saved* saved) override {
    RETURN_IF_ERROR(Check("dy", dy, SampleOf(out_, dy, saved->pass()), options_.compute));
    Tensor dx;
    RETURN_IF_ERROR(WithWeightsJoined([&]() -> absl::Status {
      ASSIGN_OR_RETURN(dx, layers_.Backward(dy, saved));
      return absl::OkStatus();
    }));
    return options_.needs_input_gradient ? dx : Tensor();
  }

  absl::Status BackwardWeights(Saved* saved) override {
    return WithWeightsJoined([&]() -> absl::Status {
      for (WaitingWeights& waiting : saved->TakeWaiting()) {
        RETURN_IF_ERROR(waiting.layer->BackwardWeights(waiting.x, waiting.dy));
        waiting = WaitingWeights();
      }
      return absl::OkStatus();
    });
  }

  absl::Span<Parameter> parameters() override { return absl::MakeSpan(parameters_); }

  absl::Status ParametersChanged() override {
    return WithWeightsJoined([this] { return layers_.ParametersChanged(ChangedBy::kAnybody); });
  }
  absl::Status ParametersUpdated() override {
    return WithWeightsJoined([this] { return layers_.ParametersChanged(ChangedBy::kOptimizer); });
  }

  absl::Status ClearGradients() override {
    for (const Parameter& parameter : parameters_) {
      if (!parameter.spec.is_trained()) continue;
      RETURN_IF_ERROR(
          ToStatus(options_.ops->Zero(Floats(parameter.gradient), parameter.gradient.elements())));
      for (const Tensor& slice : parameter.of_slices) {
        RETURN_IF_ERROR(ToStatus(options_.ops->Zero(Floats(slice), slice.elements())));
      }
    }
    return absl::OkStatus();
  }

 private:
  BlockKeeping KeepingOf(const BlockSpec& block, size_t index) const {
    if (!options_.keeping.empty()) return options_.keeping[index];
    BlockKeeping keeping;
    keeping.recompute = options_.recompute == Recompute::kBlocks && WorthRecomputing(block);
    keeping.stash = options_.stash != nullptr;
    return keeping;
  }
  void AppendTrained(const BlockSpec& block, const BlockKeeping& keeping,
                     std::unique_ptr<Layer> layers) {
    if (keeping.recompute) layers = std::make_unique<RecomputedLayer>(std::move(layers));
    if (keeping.puts_away()) {
      layers = std::make_unique<StashedLayer>(block.name, std::move(layers), options_.stash);
    }
    layers_.Append(std::move(layers));
  }
  // Calls `pass` with its work on weights and their gradients joined into few launches.
  template <typename Pass>
  absl::Status WithWeightsJoined(const Pass& pass) {
    options_.ops->JoinWeights();
    const absl::Status passed = pass();
    const absl::Status finished = ToStatus(options_.ops->FinishWeights());
    return passed.ok() ? finished : passed;
  }
  // Returns the shape that a sample of `x` must have; `whole` has all positions, but with a cache x
  // may have fewer.
  static Shape SampleOf(const Shape& whole, const Tensor& x, const Pass& pass) {
    if (pass.cache == nullptr || x.empty() || x.shape().rank() < 2) return whole;
    const int64_t positions = x.shape()[1];
    const bool fits = 0 < positions && positions + pass.first_position <= whole[1];
    return fits ? whole.With(1, positions) : whole;
  }
  absl::Status Check(const char* what, const Tensor& tensor, const Shape& sample,
                     DType type) const {
    const bool fits = !tensor.empty() && tensor.shape().rank() == sample.rank() &&
                      tensor.shape()[0] > 0 &&
                      tensor.shape() == sample.WithBatch(tensor.shape()[0]);
    if (fits && tensor.dtype() == type) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("segment from block ", name_, ": ", what, " is ",
                                                   Name(tensor.dtype()), " ",
                                                   tensor.shape().ToString(), ", want ", Name(type),
                                                   " ", sample.ToString(), " with any batch"));
  }

  const std::string name_;
  const Shape in_;
  const DType in_type_;
  const Shape out_;
  const SegmentOptions options_;
  SumsInMemory sums_;
  ExpandedWeight expanded_;
  const LayerContext context_;
  std::vector<Parameter> parameters_;
  Sequence layers_;
};

}  // namespace

bool EndsLinear(const BlockSpec& block) {
  return !block.layers.empty() && block.layers.back().kind == LayerKind::kLinear;
}

absl::StatusOr<std::unique_ptr<Segment>> BuildSegment(absl::Span<const BlockSpec> blocks,
                                                      const SegmentOptions& options) {
  if (blocks.empty()) return absl::InvalidArgumentError("a segment has at least one block");
  if (options.ends_model && !EndsLinear(blocks.back())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "block ", blocks.back().name, " ends the model, want a linear layer at its end"));
  }
  RETURN_IF_ERROR(ToStatus(options.ops->CheckComputeType(options.compute)));
  ASSIGN_OR_RETURN(auto parameters, InitialParameters(blocks, options.init_seed, options.device));
  NewtonSchulz products(options.device, options.ops);
  RETURN_IF_ERROR(KeepWithin(absl::MakeSpan(parameters), &products, options.device));
  auto segment = std::make_unique<BuiltSegment>(blocks, options, std::move(parameters));
  RETURN_IF_ERROR(segment->Build(blocks));
  return segment;
}

absl::Status ShareTiedValue(const TiedWeight& tied, Segment* segment) {
  const absl::Span<Parameter> parameters = segment->parameters();
  Parameter* const head = FindParameter(parameters, tied.copy);
  head->value = FindParameter(parameters, tied.name)->value;
  head->follows = true;
  return segment->ParametersChanged();
}

}  // namespace thinwire
