#include "nn/optimizer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerSpec& spec, Ops* ops) : spec_(spec), ops_(ops) {}

  // Velocities start as zeros: momentum 0 + g is PyTorch's first v = g.
  absl::Status Add(const Parameter& parameter, Device* device) {
    Tensor velocity;
    if (spec_.momentum != 0) {
      ASSIGN_OR_RETURN(velocity, Tensor::Allocate(device, DType::kF32, parameter.value.shape()));
      RETURN_IF_ERROR(ToStatus(ops_->Zero(Floats(velocity), velocity.elements())));
    }
    slots_.push_back({&parameter, std::move(velocity)});
    return absl::OkStatus();
  }

  absl::Status Step(double lr) override {
    std::vector<SgdParameter> parameters;
    for (const Slot& slot : slots_) {
      parameters.push_back({Floats(slot.parameter->value), Floats(slot.parameter->gradient),
                            Floats(slot.velocity), slot.parameter->value.elements()});
    }
    SgdUpdate update;
    update.parameters = parameters.data();
    update.count = static_cast<int64_t>(parameters.size());
    update.lr = static_cast<float>(lr);
    update.momentum = static_cast<float>(spec_.momentum);
    update.weight_decay = static_cast<float>(spec_.weight_decay);
    update.nesterov = spec_.nesterov;
    return ToStatus(ops_->Sgd(update));
  }

 private:
  struct Slot {
    const Parameter* parameter;
    Tensor velocity;  // empty without momentum
  };

  const OptimizerSpec spec_;
  Ops* const ops_;
  std::vector<Slot> slots_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops) {
  if (spec.momentum < 0 || spec.weight_decay < 0) {
    return absl::InvalidArgumentError(absl::StrCat("sgd: momentum ", spec.momentum,
                                                   ", weight decay ", spec.weight_decay,
                                                   ", want both at least 0"));
  }
  if (spec.nesterov && spec.momentum == 0) {
    return absl::InvalidArgumentError("sgd: nesterov wants a momentum above 0, got 0");
  }
  auto sgd = std::make_unique<Sgd>(spec, ops);
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.trainable) RETURN_IF_ERROR(sgd->Add(parameter, device));
  }
  return sgd;
}

}  // namespace thinwire
