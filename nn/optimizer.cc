#include "nn/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/muon.h"
#include "nn/parameters.h"
#include "nn/stiefel.h"
#include "nn/within.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> ZerosLike(const Tensor& value, Device* device, Ops* ops) {
  ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(device, DType::kF32, value.shape()));
  RETURN_IF_ERROR(ToStatus(ops->Zero(Floats(zeros), zeros.elements())));
  return zeros;
}

class BufferedOptimizer final : public Optimizer {
 public:
  BufferedOptimizer(const OptimizerSpec& spec, absl::Span<Parameter> parameters, Device* device,
                    Ops* ops)
      : spec_(spec),
        parameters_(parameters),
        device_(device),
        ops_(ops),
        muon_(device, ops),
        stiefel_(device, ops),
        products_(device, ops) {}

  // Adds a parameter with buffers of zeros. For SGD's velocity that gives PyTorch's first v = g, as
  // momentum 0 + g.
  absl::Status Add(const Parameter& parameter) {
    Slot slot{
        &parameter, RuleOf(spec_, parameter.spec), BufferNames(spec_, parameter.spec), {}, nullptr};
    for (size_t i = 0; i < slot.names.size(); ++i) {
      ASSIGN_OR_RETURN(Tensor zeros, ZerosLike(parameter.value, device_, ops_));
      slot.buffers.push_back(std::move(zeros));
    }
    slots_.push_back(std::move(slot));
    return absl::OkStatus();
  }

  // Has a copy written with each update that writes all of the value at once. What follows a
  // parameter shares its memory, so its copy is written by that one's update, which writes one.
  void WriteCopyOf(Parameter* parameter) {
    parameter->narrow_is_updated = false;
    if (parameter->narrow == nullptr) return;
    for (Slot& slot : slots_) {
      const bool is_value = slot.parameter->value.data() == parameter->value.data();
      if (!is_value || !IsElementwise(slot) || slot.narrow != nullptr) continue;
      slot.narrow = parameter->narrow;
      parameter->narrow_is_updated = true;
    }
  }

  absl::Status Step(double lr, GradientScale gradient_scale) override {
    RETURN_IF_ERROR(ToStatus(StepSgd(lr, gradient_scale)));
    const bool has_muon = spec_.kind == OptimizerKind::kMuon;
    const double adamw_lr = has_muon ? lr * (spec_.adamw_lr / spec_.lr) : lr;
    RETURN_IF_ERROR(ToStatus(StepAdamW(adamw_lr, gradient_scale)));
    RETURN_IF_ERROR(StepMuon(lr, gradient_scale.value));
    RETURN_IF_ERROR(StepStiefel(lr, gradient_scale.value));
    RETURN_IF_ERROR(KeepWithin(parameters_, &products_, device_));
    ++steps_;
    return absl::OkStatus();
  }

  bool takes_scale_on_device() const override {
    return std::all_of(slots_.begin(), slots_.end(), IsElementwise);
  }

  int64_t steps() const override { return steps_; }
  void set_steps(int64_t steps) override { steps_ = steps; }

  std::vector<OptimizerState> state() const override {
    std::vector<OptimizerState> state;
    for (const Slot& slot : slots_) {
      for (size_t i = 0; i < slot.names.size(); ++i) {
        state.push_back({slot.parameter->spec.name, slot.names[i], slot.buffers[i]});
      }
    }
    return state;
  }

 private:
  struct Slot {
    const Parameter* parameter;
    UpdateRule rule;
    std::vector<const char*> names;
    std::vector<Tensor> buffers;  // in the order of their names
    uint16_t* narrow;             // a copy that the update writes, or null
  };

  // Returns whether the update of an element is all that happens to it.
  static bool IsElementwise(const Slot& slot) {
    return (slot.rule == UpdateRule::kSgd || slot.rule == UpdateRule::kAdamW) &&
           slot.parameter->spec.within.empty();
  }

  Error StepSgd(double lr, GradientScale scale) {
    std::vector<SgdParameter> parameters;
    for (const Slot& slot : slots_) {
      if (slot.rule != UpdateRule::kSgd) continue;
      parameters.push_back({Floats(slot.parameter->value), Floats(slot.parameter->gradient),
                            slot.buffers.empty() ? nullptr : Floats(slot.buffers[0]),
                            slot.parameter->value.elements(), slot.narrow});
    }
    if (parameters.empty()) return Error{};
    SgdUpdate update;
    update.parameters = parameters.data();
    update.count = static_cast<int64_t>(parameters.size());
    update.lr = static_cast<float>(lr);
    update.momentum = static_cast<float>(spec_.momentum);
    update.weight_decay = static_cast<float>(spec_.weight_decay);
    update.nesterov = spec_.nesterov;
    update.gradient_scale = static_cast<float>(scale.value);
    update.clip_factor = scale.on_device;
    return ops_->Sgd(update);
  }

  Error StepAdamW(double lr, GradientScale scale) {
    std::vector<AdamWParameter> parameters;
    for (const Slot& slot : slots_) {
      if (slot.rule != UpdateRule::kAdamW) continue;
      AdamWParameter& parameter = parameters.emplace_back();
      parameter.value = Floats(slot.parameter->value);
      parameter.gradient = Floats(slot.parameter->gradient);
      parameter.mean = Floats(slot.buffers[0]);
      parameter.square = Floats(slot.buffers[1]);
      parameter.n = slot.parameter->value.elements();
      parameter.weight_decay = static_cast<float>(DecayOf(slot.parameter->spec));
      parameter.narrow = slot.narrow;
    }
    if (parameters.empty()) return Error{};
    AdamWUpdate update;
    update.parameters = parameters.data();
    update.count = static_cast<int64_t>(parameters.size());
    update.step = steps_ + 1;
    update.lr = lr;
    update.beta1 = spec_.beta1;
    update.beta2 = spec_.beta2;
    update.epsilon = spec_.epsilon;
    update.gradient_scale = static_cast<float>(scale.value);
    update.clip_factor = scale.on_device;
    return ops_->AdamW(update);
  }

  absl::Status StepMuon(double lr, double gradient_scale) {
    MuonRates rates;
    rates.lr = lr;
    rates.momentum = spec_.momentum;
    rates.weight_decay = spec_.weight_decay;
    rates.gradient_scale = gradient_scale;
    rates.nesterov = spec_.nesterov;
    for (const Slot& slot : slots_) {
      if (slot.rule != UpdateRule::kMuon) continue;
      RETURN_IF_ERROR(muon_.Step(rates, *slot.parameter, slot.buffers[0]));
    }
    return absl::OkStatus();
  }

  absl::Status StepStiefel(double lr, double gradient_scale) {
    for (const Slot& slot : slots_) {
      if (slot.rule != UpdateRule::kStiefel) continue;
      const double rate = lr * slot.parameter->spec.rate;
      RETURN_IF_ERROR(stiefel_.Step(rate, gradient_scale, *slot.parameter, slot.buffers[0]));
    }
    return absl::OkStatus();
  }

  double DecayOf(const ParameterSpec& parameter) const {
    const bool decays = spec_.decay == DecayKind::kAll || parameter.shape.rank() >= 2;
    return decays ? spec_.weight_decay : 0;
  }

  const OptimizerSpec spec_;
  const absl::Span<Parameter> parameters_;
  Device* const device_;
  Ops* const ops_;
  Muon muon_;
  StiefelDescent stiefel_;
  NewtonSchulz products_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops) {
  RETURN_IF_ERROR(CheckOptimizer(spec));
  auto optimizer = std::make_unique<BufferedOptimizer>(spec, parameters, device, ops);
  for (const Parameter& parameter : parameters) {
    if (!parameter.spec.is_trained() || parameter.follows) continue;
    RETURN_IF_ERROR(optimizer->Add(parameter));
  }
  for (Parameter& parameter : parameters) optimizer->WriteCopyOf(&parameter);
  return optimizer;
}

}  // namespace thinwire
