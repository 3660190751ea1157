#include "coordinator/plan/speeds.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace thinwire {
namespace {

// Within these bounds all sums of a simulation are finite numbers.
constexpr double kLeastSpeed = 1e-6, kMostSpeed = 1e12;

absl::Status CheckSpeed(const char* flag, double value) {
  if (value >= kLeastSpeed && value <= kMostSpeed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", value, ", want ", kLeastSpeed, " to ", kMostSpeed));
}

}  // namespace

absl::StatusOr<std::vector<BlockSeconds>> BlocksAt(const Model& model, double gflops) {
  RETURN_IF_ERROR(CheckSpeed("gflops", gflops));
  std::vector<BlockSeconds> blocks;
  for (const BlockSpec& block : model.blocks) {
    const double forward = ForwardFlops(block) / (gflops * 1e9);
    blocks.push_back({forward, 2 * forward, /*update=*/0});
  }
  return blocks;
}

absl::StatusOr<CodingSpeed> CodingAt(double gigabytes_per_second) {
  RETURN_IF_ERROR(CheckSpeed("codec_gbps", gigabytes_per_second));
  const double seconds = 1 / (gigabytes_per_second * 1e9);
  return CodingSpeed{seconds, seconds, /*payload_per_byte=*/0};
}

}  // namespace thinwire
