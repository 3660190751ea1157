#include "nn/optimizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "nn/host_adamw.h"
#include "nn/moment_codes.h"
#include "nn/muon.h"
#include "nn/parameters.h"
#include "nn/stiefel.h"
#include "nn/within.h"

namespace thinwire {
namespace {

absl::StatusOr<Tensor> Zeros(const Shape& shape, Device* device, Ops* ops) {
  ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(device, DType::kF32, shape));
  RETURN_IF_ERROR(ToStatus(ops->Zero(Floats(zeros), zeros.elements())));
  return zeros;
}

class BufferedOptimizer final : public Optimizer {
 public:
  BufferedOptimizer(const OptimizerSpec& spec, absl::Span<Parameter> parameters, Device* device,
                    Ops* ops, Ops* host_ops)
      : spec_(spec),
        parameters_(parameters),
        device_(device),
        ops_(ops),
        host_ops_(host_ops),
        muon_(device, ops),
        stiefel_(device, ops),
        products_(device, ops) {}

  // Adds a parameter with buffers of zeros. For SGD's velocity that gives PyTorch's first v = g, as
  // momentum 0 + g.
  absl::Status Add(const Parameter& parameter) {
    Slot slot;
    slot.parameter = &parameter;
    slot.rule = RuleOf(spec_, parameter.spec);
    slot.names = BufferNames(spec_, parameter.spec);
    slot.is_coded = HasCodedMoments(spec_, parameter.spec);
    slot.is_on_host = IsOnHost(slot.rule);
    if (slot.is_on_host && host_ == nullptr) {
      ASSIGN_OR_RETURN(host_, HostAdamW::New(device_, ops_, host_ops_));
    }
    const Shape& shape = parameter.value.shape();
    for (size_t i = 0; i < slot.names.size(); ++i) {
      ASSIGN_OR_RETURN(
          slot.buffers.emplace_back(),
          Zeros(slot.is_coded ? Shape({MomentWords(shape.elements())}) : shape,
                slot.is_on_host ? device_->host() : device_, slot.is_on_host ? host_ops_ : ops_));
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
    RETURN_IF_ERROR(StepAdamW(adamw_lr, gradient_scale));
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
        state.push_back({slot.parameter->spec.name, slot.names[i], slot.buffers[i],
                         slot.is_coded ? kCodes[i] : nullptr, slot.parameter->value.shape()});
      }
    }
    return state;
  }

 private:
  struct Slot {
    const Parameter* parameter = nullptr;
    UpdateRule rule = UpdateRule::kSgd;
    std::vector<const char*> names;
    std::vector<Tensor> buffers;  // in the order of their names
    uint16_t* narrow = nullptr;   // a copy that the update writes, or null
    bool is_coded = false;        // the buffers have words of codes
    bool is_on_host = false;      // they are there
  };

  // Codes of AdamW's buffers.
  static constexpr const MomentCode* kCodes[] = {&kSignedMoments, &kUnsignedMoments};

  // Returns whether the update of an element, on the device, is all that happens to it.
  static bool IsElementwise(const Slot& slot) {
    return (slot.rule == UpdateRule::kSgd || slot.rule == UpdateRule::kAdamW) &&
           slot.parameter->spec.within.empty() && !slot.is_on_host;
  }

  bool IsOnHost(UpdateRule rule) const {
    return spec_.place == OptimizerPlace::kHost && rule == UpdateRule::kAdamW &&
           !device_->is_host();
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

  absl::Status StepAdamW(double lr, GradientScale scale) {
    std::vector<AdamWParameter> here, on_host;
    for (const Slot& slot : slots_) {
      if (slot.rule != UpdateRule::kAdamW) continue;
      (slot.is_on_host ? on_host : here).push_back(Described(slot));
    }
    AdamWUpdate update;
    update.step = steps_ + 1;
    update.lr = lr;
    update.beta1 = spec_.beta1;
    update.beta2 = spec_.beta2;
    update.epsilon = spec_.epsilon;
    update.gradient_scale = static_cast<float>(scale.value);
    update.clip_factor = scale.on_device;
    const auto of = [&update](const std::vector<AdamWParameter>& parameters) {
      update.parameters = parameters.data();
      update.count = static_cast<int64_t>(parameters.size());
      return update;
    };
    if (!here.empty()) RETURN_IF_ERROR(ToStatus(ops_->AdamW(of(here))));
    return on_host.empty() ? absl::OkStatus() : host_->Update(of(on_host));
  }

  AdamWParameter Described(const Slot& slot) const {
    AdamWParameter parameter;
    parameter.value = Floats(slot.parameter->value);
    parameter.gradient = Floats(slot.parameter->gradient);
    parameter.n = slot.parameter->value.elements();
    parameter.weight_decay = static_cast<float>(DecayOf(slot.parameter->spec));
    parameter.narrow = slot.narrow;
    float *const mean = Floats(slot.buffers[0]), *const square = Floats(slot.buffers[1]);
    if (slot.is_coded) {
      parameter.coded_mean = CodedMeanIn(mean, parameter.n);
      parameter.coded_square = CodedMeanIn(square, parameter.n);
    } else {
      parameter.mean = mean;
      parameter.square = square;
    }
    return parameter;
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
  Ops* const host_ops_;
  std::unique_ptr<HostAdamW> host_;  // null: nothing is updated there
  Muon muon_;
  StiefelDescent stiefel_;
  NewtonSchulz products_;
  std::vector<Slot> slots_;
  int64_t steps_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(const OptimizerSpec& spec,
                                                        absl::Span<Parameter> parameters,
                                                        Device* device, Ops* ops, Ops* host_ops) {
  RETURN_IF_ERROR(CheckOptimizer(spec));
  auto optimizer = std::make_unique<BufferedOptimizer>(spec, parameters, device, ops, host_ops);
  for (const Parameter& parameter : parameters) {
    if (!parameter.spec.is_trained() || parameter.follows) continue;
    RETURN_IF_ERROR(optimizer->Add(parameter));
  }
  for (Parameter& parameter : parameters) optimizer->WriteCopyOf(&parameter);
  return optimizer;
}

}  // namespace thinwire
