#include "compress/feedback/direction_spec.h"

#include "base/enum_names.h"

namespace thinwire {
namespace {

constexpr Named<OnNonfinite> kOnNonfiniteNames[] = {{OnNonfinite::kError, "error"},
                                                    {OnNonfinite::kPass, "pass"}};

}  // namespace

const char* Name(OnNonfinite value) { return NameIn(kOnNonfiniteNames, value); }

absl::Status FromName(const std::string& name, OnNonfinite* to) {
  return FindName("on_nonfinite", name, kOnNonfiniteNames, to);
}

std::vector<OnNonfinite> AllOnNonfinite() { return ValuesIn(kOnNonfiniteNames); }

}  // namespace thinwire
