#include "compress/feedback/direction_spec.h"

namespace thinwire {
namespace {

constexpr Named<OnNonfinite> kOnNonfiniteNames[] = {{OnNonfinite::kError, "error"},
                                                    {OnNonfinite::kPass, "pass"}};

}  // namespace

NameTable<OnNonfinite> TableOf(OnNonfinite) { return {"on_nonfinite", kOnNonfiniteNames}; }

}  // namespace thinwire
