// Rotary positions: the angles by which attention turns queries and keys (Su et al., 2021), and
// their scaling for contexts longer than those that a model was first trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/enum_names.h"
#include "base/parameters.h"

namespace thinwire {

// Scaling of frequencies. kLinear divides all of them by `factor` (Chen et al., 2023). kLlama3, of
// Llama 3.1 and later, divides those of planes that turn fewer than `low` times in `original`
// positions. It keeps those of planes that turn more than `high` times, and goes from one to the
// other between them.
enum class RopeScalingKind { kNone, kLinear, kLlama3 };

// Returns the names "none", "linear" and "llama3".
NameTable<RopeScalingKind> TableOf(RopeScalingKind);

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 0;
  double low = 1, high = 4;  // kLlama3: numbers of turns
  int64_t original = 0;      // kLlama3: number of positions
};

// Calls visit(name, field, presence) for each parameter of the kind (base/parameters.h).
template <typename Spec, typename Visit, ForSpec<Spec, RopeScaling> = 0>
void VisitParameters(Spec& scaling, Visit&& visit) {
  if (scaling.kind == RopeScalingKind::kNone) return;
  visit("factor", scaling.factor, Presence::kRequired);
  if (scaling.kind == RopeScalingKind::kLinear) return;
  visit("low", scaling.low, Presence::kWritten);
  visit("high", scaling.high, Presence::kWritten);
  visit("original", scaling.original, Presence::kRequired);
}

// Returns InvalidArgument that names the parameter, its value and the wanted one, if one is wrong.
absl::Status CheckScaling(const RopeScaling& scaling);

// Returns the frequencies of the planes of a head, radians a position: theta^(-i / planes), scaled.
std::vector<double> RotaryFrequencies(double theta, const RopeScaling& scaling, int64_t planes);

}  // namespace thinwire
