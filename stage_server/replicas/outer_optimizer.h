// The optimizer of the values that replicas share between their local steps (DiLoCo; Douillard et
// al., 2023). Its gradient is the mean over replicas of how far each has gone from them.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "config/replicas_spec.h"
#include "nn/newton_schulz.h"
#include "nn/optimizer.h"
#include "nn/segment/segment.h"

namespace thinwire {

// Not thread-safe.
class OuterOptimizer {
 public:
  // Makes an optimizer of trainable parameters of `segments`, which outlive it as `device` and
  // `ops` do.
  static absl::StatusOr<std::unique_ptr<OuterOptimizer>> New(
      const OuterSpec& spec, const std::vector<const Parameter*>& parameters,
      std::vector<Segment*> segments, Device* device, Ops* ops);

  // Updates the shared values, which are the parameters' values. Gradients are sums over `replicas`
  // of shared minus own values; they are cleared. An orthonormal parameter becomes the mean of the
  // replicas' own, made orthonormal again. Parameters of the segments that are kept within a span
  // are projected to it (nn/within.h).
  absl::Status Step(int replicas);

  // Returns its momentum in model order, under kOuterMomentum.
  std::vector<OptimizerState> state() const;

 private:
  OuterOptimizer(const OuterSpec& spec, std::vector<Segment*> segments, Device* device, Ops* ops)
      : spec_(spec),
        segments_(std::move(segments)),
        device_(device),
        ops_(ops),
        products_(device, ops) {}
  absl::Status StepBases(int replicas);

  const OuterSpec spec_;
  const std::vector<Segment*> segments_;
  Device* const device_;
  Ops* const ops_;
  NewtonSchulz products_;
  // Parameters in the segments' memory, without the constraints that the segments keep.
  std::vector<Parameter> free_, bases_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace thinwire
