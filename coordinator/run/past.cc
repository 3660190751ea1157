#include "coordinator/run/past.h"

#include "base/status.h"
#include "coordinator/files/summary.h"

namespace thinwire {
namespace {

// A manifest of before there were digests in it gets those of the run's summary, where there is
// one.
void AddDigests(const std::string& dir, CheckpointManifest* manifest) {
  if (!manifest->train_digest().empty()) return;
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  if (!summary.ok()) return;
  manifest->set_train_digest(summary->provenance().train_digest());
  manifest->set_test_digest(summary->provenance().test_digest());
}

}  // namespace

absl::StatusOr<std::optional<FoundCheckpoint>> LastCheckpoint(const RunRecord& record) {
  absl::StatusOr<FoundCheckpoint> found = NewestCheckpoint(record.checkpoints_dir());
  if (absl::IsNotFound(found.status())) return std::nullopt;
  RETURN_IF_ERROR(found.status());
  AddDigests(record.dir(), &found->manifest);
  return *std::move(found);
}

bool HasEnded(const CheckpointManifest& reached, const Experiment& now, const std::string& dir) {
  if (reached.step() < now.epochs() * reached.steps_per_epoch()) return false;
  const absl::StatusOr<Summary> summary = ReadSummary(dir);
  return summary.ok() && summary->status() == "completed" &&
         static_cast<uint32_t>(summary->epochs_size()) >= now.epochs();
}

}  // namespace thinwire
