#include "config/replicas_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

constexpr Named<OuterKind> kOuterNames[] = {{OuterKind::kNesterov, "nesterov"},
                                            {OuterKind::kSgd, "sgd"}};

}  // namespace

OuterSpec DefaultOuter(OuterKind kind) {
  OuterSpec spec;
  spec.kind = kind;
  if (kind != OuterKind::kSgd) return spec;
  spec.lr = 1;
  spec.momentum = 0;
  return spec;
}

absl::Status CheckOuter(const OuterSpec& spec) {
  if (spec.lr <= 0 || !std::isfinite(spec.lr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("lr: ", spec.lr, ", want a finite number above 0"));
  }
  const bool wants_momentum = spec.kind == OuterKind::kNesterov;
  const bool has_enough = wants_momentum ? spec.momentum > 0 : spec.momentum >= 0;
  if (has_enough && spec.momentum < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("momentum: ", spec.momentum, ", want ",
                                                 wants_momentum ? "more than 0" : "at least 0",
                                                 " and less than 1"));
}

NameTable<OuterKind> TableOf(OuterKind) { return {"outer", kOuterNames}; }

}  // namespace thinwire
