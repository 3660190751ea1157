#include "nn/optimizer_spec.h"

#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<OptimizerKind> kOptimizerNames[] = {{OptimizerKind::kSgd, "sgd"}};

}  // namespace

const char* Name(OptimizerKind kind) { return NameIn(kOptimizerNames, kind); }

absl::Status FromName(const std::string& name, OptimizerKind* to) {
  return FindName("optimizer", name, kOptimizerNames, to);
}

std::vector<OptimizerKind> AllOptimizers() { return ValuesIn(kOptimizerNames); }

}  // namespace thinwire
