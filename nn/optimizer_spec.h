// Which optimizer, with which parameters: the checked form of an experiment's `optimizer`, but for
// the learning rate, which each step gets from its schedule (nn/lr_schedule.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/parameters.h"

namespace thinwire {

enum class OptimizerKind : uint8_t { kSgd };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0;
  double weight_decay = 0;  // added to the gradient of every parameter, batch norm and bias too
  bool nesterov = false;
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, OptimizerSpec> = 0>
void VisitParameters(Spec& spec, Visit&& visit) {
  visit("momentum", spec.momentum, Presence::kWritten);
  visit("weight_decay", spec.weight_decay, Presence::kWritten);
  visit("nesterov", spec.nesterov, Presence::kWritten);
}

// Names as experiment files spell them; the inverse gives InvalidArgument with the known ones.
const char* Name(OptimizerKind kind);
absl::Status FromName(const std::string& name, OptimizerKind* to);
std::vector<OptimizerKind> AllOptimizers();

}  // namespace thinwire
