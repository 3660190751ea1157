#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/checks.h"
#include "config/sections.h"
#include "config/specs.h"

namespace thinwire {
namespace {

constexpr uint64_t kLimitBytes = uint64_t{1} << 30;
constexpr const char* kDirections[] = {"activations", "gradients"};

absl::Status CheckSteps(const Experiment& experiment, const CaptureConfig& capture) {
  if (capture.steps().empty()) {
    return absl::InvalidArgumentError("capture.steps: is required with capture");
  }
  uint64_t before = 0;
  for (const uint64_t step : capture.steps()) {
    if (step <= before) {
      return absl::InvalidArgumentError(absl::StrCat("capture.steps: ", step, " after ", before,
                                                     ", want ascending steps from 1"));
    }
    before = step;
  }
  ASSIGN_OR_RETURN(const uint64_t steps, TrainingSteps(experiment));
  if (before <= steps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("capture.steps: ", before, ", want at most ", steps, ", the run's last step"));
}

// Checks that each of `names` is one of `known` and occurs once.
absl::Status CheckNames(const std::string& path, const std::string& what,
                        const google::protobuf::RepeatedPtrField<std::string>& names,
                        const std::vector<std::string>& known) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    RETURN_IF_ERROR(CheckName(path, what, *name, known));
    if (std::find(names.begin(), name, *name) != name) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", *name, " stands there twice"));
    }
  }
  return absl::OkStatus();
}

// Returns the product, or the greatest number if the product is larger.
uint64_t Times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

absl::Status CheckBytes(const Experiment& experiment, const Partition& partition,
                        const CaptureConfig& capture) {
  ASSIGN_OR_RETURN(const DType compute, ComputeFrom(experiment));
  uint64_t of_batch = 0;
  for (const Cut& cut : partition.cuts) {
    if (std::count(capture.cuts().begin(), capture.cuts().end(), cut.name) == 0) continue;
    const Shape& sample = partition.model.blocks[cut.block].out;
    of_batch += static_cast<uint64_t>(sample.elements()) * SizeOf(compute);
  }
  of_batch = Times(of_batch, experiment.data().batch_size());
  const uint64_t bytes =
      Times(of_batch, static_cast<uint64_t>(capture.what_size()) * capture.steps_size());
  if (bytes <= capture.limit_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "capture: ", capture.steps_size(), " steps of ", capture.cuts_size(), " cuts have ", bytes,
      " bytes, want at most capture.limit_bytes, ", capture.limit_bytes()));
}

}  // namespace

absl::Status ResolveCapture(const Experiment& experiment, CaptureConfig* capture) {
  if (capture->what().empty()) {
    for (const char* direction : kDirections) capture->add_what(direction);
  }
  if (!capture->has_limit_bytes()) capture->set_limit_bytes(kLimitBytes);
  ASSIGN_OR_RETURN(const Partition partition, PartitionFrom(experiment));
  if (partition.cuts.empty()) {
    return absl::InvalidArgumentError("capture: the model is not cut");
  }
  std::vector<std::string> cuts;
  for (const Cut& cut : partition.cuts) cuts.push_back(cut.name);
  if (capture->cuts().empty()) *capture->mutable_cuts() = {cuts.begin(), cuts.end()};
  RETURN_IF_ERROR(CheckSteps(experiment, *capture));
  RETURN_IF_ERROR(CheckNames("capture.what", "direction", capture->what(),
                             {std::begin(kDirections), std::end(kDirections)}));
  RETURN_IF_ERROR(CheckNames("capture.cuts", "cut", capture->cuts(), cuts));
  return CheckBytes(experiment, partition, *capture);
}

}  // namespace thinwire
