#include "coordinator/run/captures.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/specs.h"
#include "coordinator/plan/captured_outliers.h"

namespace thinwire {
namespace {

// Returns an upper bound for what a stage's capture file of one step holds besides the tensors'
// bytes.
uint64_t CaptureHeaderBytes(const Experiment& experiment) {
  constexpr uint64_t kFileBytes = 1024, kTensorBytes = 256;
  const CaptureConfig& capture = experiment.capture();
  const uint64_t tensors_of_cut = uint64_t{ReplicasOf(experiment) * UnitsOf(experiment)} *
                                  static_cast<uint64_t>(capture.what_size());
  uint64_t bytes = kFileBytes;
  for (const std::string& cut : capture.cuts()) {
    bytes += tensors_of_cut * (kTensorBytes + 2 * cut.size());  // twice, as names may be escaped
  }
  return bytes;
}

absl::Status TakeCapture(const Experiment& experiment, uint64_t step, StageClient& stage,
                         std::string* file) {
  const uint64_t header = CaptureHeaderBytes(experiment);
  return stage.ExportCapture(step, [&](const FileChunk& chunk) {
    const uint64_t bytes = file->size() + chunk.data().size();
    if (bytes > header && bytes - header > experiment.capture().limit_bytes()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          stage.Name(), ": its capture of step ", step, " has ", bytes, " bytes or more, want ",
          experiment.capture().limit_bytes(), ", which is capture.limit_bytes, and a header"));
    }
    *file += chunk.data();
    return absl::OkStatus();
  });
}

// Warns where codecs get outliers. What cannot be read for that was captured all the same.
absl::Status WarnOfOutliers(const Experiment& experiment, uint64_t step,
                            const std::vector<std::string>& files, RunObserver* observer) {
  const auto lines = OutliersOfStep(step, files, experiment);
  if (!lines.ok()) return absl::OkStatus();
  for (const std::string& line : *lines) RETURN_IF_ERROR(observer->OnWarning(line));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCaptureSteps(const Experiment& experiment, const RunPlan& plan) {
  const uint64_t steps = plan.steps();
  for (const uint64_t step : experiment.capture().steps()) {
    if (step > steps) {
      return absl::InvalidArgumentError(absl::StrCat("capture.steps: ", step, ", want at most ",
                                                     steps, ": the stages have ",
                                                     plan.train_samples, " training samples"));
    }
  }
  return absl::OkStatus();
}

absl::Status FetchCaptures(const Experiment& experiment, uint64_t after, uint64_t until,
                           Fleet* fleet, RunObserver* observer) {
  for (const uint64_t step : experiment.capture().steps()) {
    if (step <= after || step > until) continue;
    std::vector<std::string> files(static_cast<size_t>(fleet->size()));
    RETURN_IF_ERROR(fleet->OnAll([&](StageClient& stage) {
      return TakeCapture(experiment, step, stage, &files[stage.server()]);
    }));
    RETURN_IF_ERROR(observer->OnCapture(step, files));
    if (step == experiment.capture().steps(0)) {
      RETURN_IF_ERROR(WarnOfOutliers(experiment, step, files, observer));
    }
  }
  return absl::OkStatus();
}

}  // namespace thinwire
