// Which optimizer, with which parameters: the checked form of an experiment's `optimizer`, but for
// the learning rate, which each step gets from its schedule (nn/lr_schedule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/parameters.h"

namespace thinwire {

enum class OptimizerKind : uint8_t {
  kSgd,
  kAdamW,  // Loshchilov & Hutter, ICLR 2019
};

// Which parameters weight decay is for: all, or those of two and more axes, which leaves out biases
// and what norms have.
enum class DecayKind : uint8_t { kAll, kMatrices };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  // kSgd: added to the gradient of every parameter, batch norm and bias too. kAdamW: what a step
  // subtracts of the value itself, times the learning rate.
  double weight_decay = 0;
  double momentum = 0;  // these two: kSgd
  bool nesterov = false;
  double beta1 = 0.9;  // these four: kAdamW
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
  }
  visit("clip_norm", spec.clip_norm, Presence::kOptional);
}

// InvalidArgument names the parameter that is out of range, the value met and what is wanted.
absl::Status CheckOptimizer(const OptimizerSpec& spec);

// How many fp32 numbers the optimizer remembers of each element of a parameter.
int OptimizerBuffers(const OptimizerSpec& spec);

// Names as experiment files spell them; the inverse gives InvalidArgument with the known ones.
const char* Name(OptimizerKind kind);
const char* Name(DecayKind kind);
absl::Status FromName(const std::string& name, OptimizerKind* to);
absl::Status FromName(const std::string& name, DecayKind* to);
std::vector<OptimizerKind> AllOptimizers();
std::vector<DecayKind> AllDecays();

}  // namespace thinwire
