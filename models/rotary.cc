#include "models/rotary.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

constexpr Named<RopeScalingKind> kScalingNames[] = {{RopeScalingKind::kNone, "none"},
                                                    {RopeScalingKind::kLinear, "linear"},
                                                    {RopeScalingKind::kLlama3, "llama3"}};

constexpr double kTurn = 6.283185307179586;  // radians

absl::Status CheckScalingValue(bool good, const char* field, double value,
                               const std::string& want) {
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rope_scaling.", field, " is ", value, ", want ", want));
}

double Scaled(double frequency, const RopeScaling& scaling) {
  const double divided = frequency / scaling.factor;
  if (scaling.kind == RopeScalingKind::kLinear) return divided;
  const double turns = static_cast<double>(scaling.original) * frequency / kTurn;
  if (turns > scaling.high) return frequency;
  if (turns < scaling.low) return divided;
  const double kept = (turns - scaling.low) / (scaling.high - scaling.low);
  return (1 - kept) * divided + kept * frequency;
}

}  // namespace

NameTable<RopeScalingKind> TableOf(RopeScalingKind) { return {"rope_scaling", kScalingNames}; }

absl::Status CheckScaling(const RopeScaling& scaling) {
  constexpr double kMost = 1e6;
  if (scaling.kind == RopeScalingKind::kNone) return absl::OkStatus();
  RETURN_IF_ERROR(CheckScalingValue(scaling.factor >= 1 && scaling.factor <= kMost, "factor",
                                    scaling.factor, absl::StrCat("1 to ", kMost)));
  if (scaling.kind == RopeScalingKind::kLinear) return absl::OkStatus();
  RETURN_IF_ERROR(CheckScalingValue(scaling.low > 0 && scaling.low <= kMost, "low", scaling.low,
                                    absl::StrCat("more than 0 and at most ", kMost)));
  RETURN_IF_ERROR(
      CheckScalingValue(scaling.high > scaling.low && scaling.high <= kMost, "high", scaling.high,
                        absl::StrCat("more than low, ", scaling.low, ", and at most ", kMost)));
  return CheckScalingValue(scaling.original >= 1, "original", static_cast<double>(scaling.original),
                           "at least 1 position");
}

std::vector<double> RotaryFrequencies(double theta, const RopeScaling& scaling, int64_t planes) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < planes; ++i) {
    const double frequency = std::pow(theta, -static_cast<double>(i) / static_cast<double>(planes));
    frequencies.push_back(scaling.kind == RopeScalingKind::kNone ? frequency
                                                                 : Scaled(frequency, scaling));
  }
  return frequencies;
}

}  // namespace thinwire
