// Which optimizer, with which parameters: the checked form of an experiment's `optimizer`, but for
// the learning rate, which each step gets from its schedule (nn/lr_schedule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/parameters.h"
#include "models/model.h"

namespace thinwire {

enum class OptimizerKind : uint8_t {
  kSgd,
  kAdamW,  // Loshchilov & Hutter, ICLR 2019
  // Jordan et al., 2024 (kellerjordan.github.io/posts/muon, github.com/KellerJordan/Muon): hidden
  // matrices by Muon, all else by AdamW with a rate of its own.
  kMuon,
};

// Which parameters weight decay is for: all, or those of two and more axes, which leaves out biases
// and what norms have.
enum class DecayKind : uint8_t { kAll, kMatrices };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  // kSgd: added to the gradient of every parameter, batch norm and bias too. Others: what a step
  // subtracts of the value itself, times the parameter's learning rate.
  double weight_decay = 0;
  double momentum = 0;  // these two: kSgd, kMuon
  bool nesterov = false;
  // kMuon: the rate of AdamW where the schedule's first one is `lr`; it takes the same course.
  double adamw_lr = 3e-4, lr = 1;
  double beta1 = 0.9;  // these four: kAdamW, kMuon
  double beta2 = 0.999;
  double epsilon = 1e-8;
  DecayKind decay = DecayKind::kAll;
  // The longest that the gradient of the whole model may be, in the 2-norm: a longer one is scaled
  // down (Pascanu et al., ICML 2013). 0: as long as it is.
  double clip_norm = 0;
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

// One of that kind with the defaults of its parameters: those of Muon are its authors'.
OptimizerSpec DefaultOptimizer(OptimizerKind kind);

// InvalidArgument names the parameter that is out of range, the value met and what is wanted.
absl::Status CheckOptimizer(const OptimizerSpec& spec);

// How a parameter is updated.
enum class UpdateRule : uint8_t {
  kSgd,
  kAdamW,
  kMuon,
  kStiefel,  // ParameterSpec::orthonormal, whatever the optimizer (nn/stiefel.h)
};
UpdateRule RuleOf(const OptimizerSpec& spec, const ParameterSpec& parameter);

// What the optimizer remembers of a parameter, by PyTorch's names: tensors of its shape.
std::vector<const char*> BufferNames(const OptimizerSpec& spec, const ParameterSpec& parameter);

// How many fp32 numbers that are for each element of one that is hidden or not.
int OptimizerBuffers(const OptimizerSpec& spec, bool hidden);

// Names as experiment files spell them; the inverse gives InvalidArgument with the known ones.
const char* Name(OptimizerKind kind);
const char* Name(DecayKind kind);
absl::Status FromName(const std::string& name, OptimizerKind* to);
absl::Status FromName(const std::string& name, DecayKind* to);
std::vector<OptimizerKind> AllOptimizers();
std::vector<DecayKind> AllDecays();

}  // namespace thinwire
