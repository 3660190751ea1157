#include "nn/optimizer_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<OptimizerKind> kOptimizerNames[] = {{OptimizerKind::kSgd, "sgd"},
                                                    {OptimizerKind::kAdamW, "adamw"}};
constexpr Named<DecayKind> kDecayNames[] = {{DecayKind::kAll, "all"},
                                            {DecayKind::kMatrices, "matrices"}};

bool IsRate(double value) { return value >= 0 && value < 1; }

// A condition that a parameter may miss.
struct Wanted {
  const char* parameter;
  double met;
  bool holds;
  const char* wanted;
};

}  // namespace

absl::Status CheckOptimizer(const OptimizerSpec& spec) {
  const auto is_length = [](double value) { return value >= 0 && std::isfinite(value); };
  const Wanted all[] = {
      {"weight_decay", spec.weight_decay, is_length(spec.weight_decay),
       "a finite number, at least 0"},
      {"momentum", spec.momentum, IsRate(spec.momentum), "at least 0 and less than 1"},
      {"momentum", spec.momentum, !spec.nesterov || spec.momentum > 0, "more than 0 with nesterov"},
      {"beta1", spec.beta1, IsRate(spec.beta1), "at least 0 and less than 1"},
      {"beta2", spec.beta2, IsRate(spec.beta2), "at least 0 and less than 1"},
      {"epsilon", spec.epsilon, spec.epsilon > 0 && spec.epsilon <= 1, "more than 0 and at most 1"},
      {"clip_norm", spec.clip_norm, is_length(spec.clip_norm), "a finite number, at least 0"},
  };
  for (const Wanted& one : all) {
    if (one.holds) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(one.parameter, ": ", one.met, ", want ", one.wanted));
  }
  return absl::OkStatus();
}

int OptimizerBuffers(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::kSgd:
      return spec.momentum > 0 ? 1 : 0;
    case OptimizerKind::kAdamW:
      return 2;
  }
  return 0;
}

const char* Name(OptimizerKind kind) { return NameIn(kOptimizerNames, kind); }
const char* Name(DecayKind kind) { return NameIn(kDecayNames, kind); }

absl::Status FromName(const std::string& name, OptimizerKind* to) {
  return FindName("optimizer", name, kOptimizerNames, to);
}

absl::Status FromName(const std::string& name, DecayKind* to) {
  return FindName("decay", name, kDecayNames, to);
}

std::vector<OptimizerKind> AllOptimizers() { return ValuesIn(kOptimizerNames); }
std::vector<DecayKind> AllDecays() { return ValuesIn(kDecayNames); }

}  // namespace thinwire
