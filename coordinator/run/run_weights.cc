#include "coordinator/run/run_weights.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "config/yaml_tree.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/record.h"
#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

constexpr char kBest[] = "best";

absl::StatusOr<uint64_t> StepOf(const RunAt& at, const std::string& checkpoints) {
  uint64_t step = 0;
  if (absl::SimpleAtoi(*at.step, &step)) return step;
  const std::optional<uint64_t> best = BestStep(checkpoints);
  if (at.step == kBest && best) return *best;
  if (at.step == kBest) {
    return absl::NotFoundError(
        absl::StrCat(at.run, ": has no best checkpoint, want a run with checkpoint.best"));
  }
  return absl::InvalidArgumentError(absl::StrCat(at.run, "@", *at.step, ": \"", *at.step,
                                                 "\" behind the @, want the step of a checkpoint "
                                                 "or best, as in runs/mine@1200"));
}

// Returns the epochs of summary.json: fewer than the experiment's where early_stop ended the run.
std::optional<uint32_t> EpochsOf(const std::string& run) {
  const absl::StatusOr<Summary> summary = ReadSummary(run);
  if (!summary.ok() || summary->epochs().empty()) return std::nullopt;
  return static_cast<uint32_t>(summary->epochs_size());
}

}  // namespace

RunAt ParseRunAt(const std::string& text) {
  const size_t at = text.rfind('@');
  std::error_code ignored;
  if (at == std::string::npos || std::filesystem::exists(text, ignored)) {
    return {text, std::nullopt};
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

absl::StatusOr<RunWeights> WeightsOf(const RunAt& at) {
  RETURN_IF_ERROR(CheckRecorded(at.run));
  const std::string recorded = at.run + "/experiment.yaml";
  if (!at.step) {
    ASSIGN_OR_RETURN(std::string text, ReadYamlFile(recorded));
    return RunWeights{at.run + "/model", recorded, std::move(text), EpochsOf(at.run)};
  }
  const std::string checkpoints = at.run + "/checkpoints";
  ASSIGN_OR_RETURN(const uint64_t step, StepOf(at, checkpoints));
  ASSIGN_OR_RETURN(const FoundCheckpoint found, CheckpointOfStep(checkpoints, step));
  return RunWeights{found.path, absl::StrCat(found.path, "/manifest.json"),
                    found.manifest.experiment(), found.manifest.epoch()};
}

}  // namespace thinwire
