#include "nn/optimizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/parameters.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> ZerosLike(const Tensor& value, Device* device, Ops* ops) {
  ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(device, DType::kF32, value.shape()));
  RETURN_IF_ERROR(ToStatus(ops->Zero(Floats(zeros), zeros.elements())));
  return zeros;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerSpec& spec, Ops* ops) : spec_(spec), ops_(ops) {}

  // Velocities start as zeros: momentum 0 + g is PyTorch's first v = g.
  absl::Status Add(const Parameter& parameter, Device* device) {
    Tensor velocity;
    if (spec_.momentum != 0) {
      ASSIGN_OR_RETURN(velocity, ZerosLike(parameter.value, device, ops_));
    }
    slots_.push_back({&parameter, std::move(velocity)});
    return absl::OkStatus();
  }

  absl::Status Step(double lr, double gradient_scale) override {
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
    update.gradient_scale = static_cast<float>(gradient_scale);
    RETURN_IF_ERROR(ToStatus(ops_->Sgd(update)));
    ++steps_;
    return absl::OkStatus();
  }

  int64_t steps() const override { return steps_; }

  std::vector<OptimizerState> state() const override {
    std::vector<OptimizerState> state;
    for (const Slot& slot : slots_) {
      if (slot.velocity.empty()) continue;
      state.push_back({slot.parameter->spec.name, "momentum_buffer", slot.velocity});
    }
    return state;
  }

 private:
  struct Slot {
    const Parameter* parameter;
    Tensor velocity;  // empty without momentum
  };

  const OptimizerSpec spec_;
  Ops* const ops_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerSpec& spec, Ops* ops) : spec_(spec), ops_(ops) {}

  absl::Status Add(const Parameter& parameter, Device* device) {
    Slot slot{&parameter, {}, {}};
    ASSIGN_OR_RETURN(slot.mean, ZerosLike(parameter.value, device, ops_));
    ASSIGN_OR_RETURN(slot.square, ZerosLike(parameter.value, device, ops_));
    slots_.push_back(std::move(slot));
    return absl::OkStatus();
  }

  absl::Status Step(double lr, double gradient_scale) override {
    std::vector<AdamWParameter> parameters;
    for (const Slot& slot : slots_) {
      AdamWParameter& parameter = parameters.emplace_back();
      parameter.value = Floats(slot.parameter->value);
      parameter.gradient = Floats(slot.parameter->gradient);
      parameter.mean = Floats(slot.mean);
      parameter.square = Floats(slot.square);
      parameter.n = slot.parameter->value.elements();
      parameter.weight_decay = static_cast<float>(DecayOf(slot.parameter->spec));
    }
    AdamWUpdate update;
    update.parameters = parameters.data();
    update.count = static_cast<int64_t>(parameters.size());
    update.step = steps_ + 1;
    update.lr = lr;
    update.beta1 = spec_.beta1;
    update.beta2 = spec_.beta2;
    update.epsilon = spec_.epsilon;
    update.gradient_scale = static_cast<float>(gradient_scale);
    RETURN_IF_ERROR(ToStatus(ops_->AdamW(update)));
    ++steps_;
    return absl::OkStatus();
  }

  int64_t steps() const override { return steps_; }

  std::vector<OptimizerState> state() const override {
    std::vector<OptimizerState> state;
    for (const Slot& slot : slots_) {
      state.push_back({slot.parameter->spec.name, "exp_avg", slot.mean});
      state.push_back({slot.parameter->spec.name, "exp_avg_sq", slot.square});
    }
    return state;
  }

 private:
  struct Slot {
    const Parameter* parameter;
    Tensor mean, square;  // of the gradients, moving averages
  };

  double DecayOf(const ParameterSpec& parameter) const {
    const bool decays = spec_.decay == DecayKind::kAll || parameter.shape.rank() >= 2;
    return decays ? spec_.weight_decay : 0;
  }

  const OptimizerSpec spec_;
  Ops* const ops_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

template <typename Kind>
absl::StatusOr<std::unique_ptr<Optimizer>> New(const OptimizerSpec& spec,
                                               absl::Span<Parameter> parameters, Device* device,
                                               Ops* ops) {
  auto optimizer = std::make_unique<Kind>(spec, ops);
  for (const Parameter& parameter : parameters) {
    if (parameter.spec.trainable) RETURN_IF_ERROR(optimizer->Add(parameter, device));
  }
  return optimizer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops) {
  RETURN_IF_ERROR(CheckOptimizer(spec));
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return New<Sgd>(spec, parameters, device, ops);
    case OptimizerKind::kAdamW:
      return New<AdamW>(spec, parameters, device, ops);
  }
  return absl::InternalError("optimizer of an unknown kind");
}

}  // namespace thinwire
