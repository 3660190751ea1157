#include "stage_server/replicas/outer_optimizer.h"

#include <utility>

#include "base/status.h"
#include "nn/within.h"

namespace thinwire {
namespace {

// Steps of kNewtonsCubic. A mean of orthonormal matrices has singular values of at most 1, and not
// far below it as long as the replicas stay together.
constexpr int kRetractionSteps = 8;

OptimizerSpec SpecOf(const OuterSpec& outer) {
  OptimizerSpec spec;
  spec.kind = OptimizerKind::kSgd;
  spec.momentum = outer.momentum;
  spec.nesterov = outer.kind == OuterKind::kNesterov;
  return spec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OuterOptimizer>> OuterOptimizer::New(
    const OuterSpec& spec, const std::vector<const Parameter*>& parameters,
    std::vector<Segment*> segments, Device* device, Ops* ops) {
  std::unique_ptr<OuterOptimizer> made(new OuterOptimizer(spec, std::move(segments), device, ops));
  for (const Parameter* parameter : parameters) {
    Parameter& own =
        (parameter->spec.orthonormal ? made->bases_ : made->free_).emplace_back(*parameter);
    own.spec.within.clear();
  }
  ASSIGN_OR_RETURN(made->optimizer_,
                   NewOptimizer(SpecOf(spec), absl::MakeSpan(made->free_), device, ops));
  return made;
}

absl::Status OuterOptimizer::Step(int replicas) {
  RETURN_IF_ERROR(optimizer_->Step(spec_.lr, GradientScale(1.0 / replicas)));
  RETURN_IF_ERROR(StepBases(replicas));
  for (Segment* segment : segments_) {
    RETURN_IF_ERROR(KeepWithin(segment->parameters(), &products_, device_));
  }
  return absl::OkStatus();
}

absl::Status OuterOptimizer::StepBases(int replicas) {
  const auto scale = static_cast<float>(-1.0 / replicas);
  for (const Parameter& basis : bases_) {
    const Matrix w = MatrixOf(basis.value), sum = MatrixOf(basis.gradient);
    RETURN_IF_ERROR(ToStatus(ops_->Combine({1, w.data, scale, sum.data, w.data, w.elements()})));
    RETURN_IF_ERROR(products_.Apply(kNewtonsCubic, kRetractionSteps, w));
    RETURN_IF_ERROR(ToStatus(ops_->Zero(sum.data, sum.elements())));
  }
  return absl::OkStatus();
}

std::vector<OptimizerState> OuterOptimizer::state() const {
  std::vector<OptimizerState> state = optimizer_->state();
  for (OptimizerState& one : state) one.name = kOuterMomentum;
  return state;
}

}  // namespace thinwire
