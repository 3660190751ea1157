// Choice of an optimizer and its parameters: the checked form of an experiment's `optimizer`. The
// learning rate is not part of it; each step gets it from the schedule (nn/lr_schedule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/enum_names.h"
#include "base/parameters.h"
#include "models/model.h"

namespace thinwire {

enum class OptimizerKind : uint8_t {
  kSgd,
  kAdamW,  // Loshchilov & Hutter, ICLR 2019
  // Muon for hidden matrices, AdamW with its own rate for all else. Jordan et al., 2024
  // (kellerjordan.github.io/posts/muon, github.com/KellerJordan/Muon).
  kMuon,
};

// Parameters that weight decay applies to: all, or only those of two or more axes. The latter
// leaves out biases and the parameters of norms.
enum class DecayKind : uint8_t { kAll, kMatrices };

// Places of AdamW's means, and of the update with them: the device, or the memory and the processor
// of its host. On the CPU both are the same.
enum class OptimizerPlace : uint8_t { kDevice, kHost };

// Forms of AdamW's means: fp32, or codes of a byte (nn/moment_codes.h).
enum class MomentFormat : uint8_t { kFP32, kInt8 };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  // kSgd: this factor of every parameter, batch norm and bias included, is added to its gradient.
  // Others: each step subtracts this factor of the value, times the parameter's learning rate.
  double weight_decay = 0;
  double momentum = 0;  // this and nesterov: kSgd, kMuon
  bool nesterov = false;
  // kMuon: AdamW's rate at the schedule's first rate `lr`; both change by the same factor.
  double adamw_lr = 3e-4, lr = 1;
  double beta1 = 0.9;  // this, beta2, epsilon and decay: kAdamW, kMuon
  double beta2 = 0.999;
  double epsilon = 1e-8;
  DecayKind decay = DecayKind::kAll;
  // Largest 2-norm of the whole model's gradient; a longer gradient is scaled down (Pascanu et al.,
  // ICML 2013). 0: no limit.
  double clip_norm = 0;
  OptimizerPlace place = OptimizerPlace::kDevice;  // this and moments: kAdamW
  MomentFormat moments = MomentFormat::kFP32;
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, OptimizerSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  visit("weight_decay", spec.weight_decay, Presence::kWritten);
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      visit("momentum", spec.momentum, Presence::kWritten);
      visit("nesterov", spec.nesterov, Presence::kWritten);
      break;
    case OptimizerKind::kAdamW:
      visit("beta1", spec.beta1, Presence::kWritten);
      visit("beta2", spec.beta2, Presence::kWritten);
      visit("epsilon", spec.epsilon, Presence::kWritten);
      visit("decay", spec.decay, Presence::kWritten);
      visit("place", spec.place, Presence::kOptional);
      visit("moments", spec.moments, Presence::kOptional);
      break;
    case OptimizerKind::kMuon:
      visit("momentum", spec.momentum, Presence::kWritten);
      visit("nesterov", spec.nesterov, Presence::kWritten);
      visit("adamw_lr", spec.adamw_lr, Presence::kWritten);
      visit("beta1", spec.beta1, Presence::kWritten);
      visit("beta2", spec.beta2, Presence::kWritten);
      visit("epsilon", spec.epsilon, Presence::kWritten);
      visit("decay", spec.decay, Presence::kWritten);
      break;
  }
  visit("clip_norm", spec.clip_norm, Presence::kOptional);
}

// Returns a spec of that kind with default parameters; Muon's are its authors'.
OptimizerSpec DefaultOptimizer(OptimizerKind kind);

// Checks the ranges. InvalidArgument names the parameter, its value and what is wanted.
absl::Status CheckOptimizer(const OptimizerSpec& spec);

// Ways to update a parameter.
enum class UpdateRule : uint8_t {
  kSgd,
  kAdamW,
  kMuon,
  kStiefel,  // for ParameterSpec::orthonormal with every optimizer (nn/stiefel.h)
};
// Returns how the optimizer updates a parameter.
UpdateRule RuleOf(const OptimizerSpec& spec, const ParameterSpec& parameter);

// Returns whether AdamW's means of a parameter are codes: those of hidden weights of at least 4096
// elements. At the ends of a model some gradients are rare or far larger than others, as those of
// embeddings, and what is small saves nothing.
bool HasCodedMoments(const OptimizerSpec& spec, const ParameterSpec& parameter);

// Returns the names, as in PyTorch, of the tensors that the optimizer keeps of a parameter. Each
// has its shape.
std::vector<const char*> BufferNames(const OptimizerSpec& spec, const ParameterSpec& parameter);

// Returns the memory that the optimizer takes for an element of a parameter that is `hidden` or is
// not, in fp32 numbers: on a GPU if `on_gpu`, where what is on its host does not count. Hidden
// parameters count as large ones (HasCodedMoments).
double OptimizerBuffers(const OptimizerSpec& spec, bool hidden, bool on_gpu = false);

// Return the names in experiment files (base/enum_names.h).
NameTable<OptimizerKind> TableOf(OptimizerKind);
NameTable<DecayKind> TableOf(DecayKind);
NameTable<OptimizerPlace> TableOf(OptimizerPlace);
NameTable<MomentFormat> TableOf(MomentFormat);

}  // namespace thinwire
