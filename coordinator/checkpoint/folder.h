// A run's checkpoints on disk: a folder RUN/checkpoints/step-N for each (docs/checkpoints.md). A
// checkpoint is written as step-N.tmp, the manifest last, and renamed when all of it is on the
// disk. So a folder with the final name is whole, however the process ended.
//
// Beside them is epochs.jsonl: the results of the run's complete epochs, one EpochRecord a line.
// Checkpoints share the file, so that none grows with the number of epochs. The manifest of a
// checkpoint says how much of the file's beginning belongs to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "coordinator/checkpoint/manifest.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

inline constexpr char kEpochLog[] = "epochs.jsonl";
inline constexpr char kBest[] = "best";

// Writer of the file. Errors name the file. One thread at a time.
class EpochLog {
 public:
  // `kept` is the beginning of the file in the folder `checkpoints` that belongs to the run. The
  // rest is dropped with the next Append.
  EpochLog(const std::string& checkpoints, EpochsKept kept);

  const EpochsKept& kept() const { return kept_; }
  // Writes those of `epochs` that are not yet kept; they are on the disk when it returns. DataLoss
  // if the file has lost some of the kept ones.
  absl::Status Append(const std::vector<EpochRecord>& epochs);

 private:
  absl::Status Write(int file, const std::string& lines) const;

  const std::string folder_, path_;
  EpochsKept kept_;
};

// Returns the epochs that `kept` describes. DataLoss says what is missing or not what was written.
absl::StatusOr<std::vector<EpochRecord>> ReadEpochs(const std::string& checkpoints,
                                                    const EpochsKept& kept);

// Value of StatePart.tensors for parameters and running statistics.
inline constexpr char kModelTensors[] = "model";
// Value for those of a replica, within a round of local steps.
inline constexpr char kReplicaModelTensors[] = "replica_model";

// Returns "RUN/checkpoints/step-12".
std::string CheckpointPath(const std::string& checkpoints, uint64_t step);

// Returns the steps of the checkpoints in that folder, ascending; none if the folder does not
// exist. Entries with other names are ignored.
absl::StatusOr<std::vector<uint64_t>> ListCheckpoints(const std::string& checkpoints);

// Returns the steps of all checkpoints in that folder, at least one, or only `step` if it is given.
// NotFound says which there are.
absl::StatusOr<std::vector<uint64_t>> FindSteps(const std::string& checkpoints,
                                                std::optional<uint64_t> step);

// Reads the manifest of a checkpoint. Returns the errors of ParseManifest; also DataLoss if there
// is no manifest, or if it is of another step than the folder's name says.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& checkpoint);

// Reads every file that the manifest names, and its epochs. DataLoss names the first file that is
// missing or has another size or digest, with the expected and the actual value.
absl::Status VerifyCheckpoint(const std::string& checkpoint, const CheckpointManifest& manifest);

// Finds the newest whole checkpoint, its files included; the progress in its manifest has the
// epochs. `skipped` gets a line for each newer checkpoint that is not whole. NotFound if there is
// none; DataLoss if none is whole, with what is wrong with each.
struct FoundCheckpoint {
  std::string path;
  CheckpointManifest manifest;
  std::vector<std::string> skipped;
  bool is_chosen = false;  // True: a user named its step, so later ones are not to be lost.
};
absl::StatusOr<FoundCheckpoint> NewestCheckpoint(const std::string& checkpoints);

// Finds the checkpoint of that step in the same way. Errors of FindSteps; DataLoss says what is
// wrong with it.
absl::StatusOr<FoundCheckpoint> CheckpointOfStep(const std::string& checkpoints, uint64_t step);

// Makes the link `best` lead to the checkpoint of `step`.
absl::Status SetBest(const std::string& checkpoints, uint64_t step);
// Returns the step that `best` leads to, if there is such a link.
std::optional<uint64_t> BestStep(const std::string& checkpoints);

// Removes all but the best and the newest `keep` checkpoints, and half-written ones. Must not run
// while one is written. A checkpoint loses its name before its first file.
absl::Status PruneCheckpoints(const std::string& checkpoints, uint32_t keep);

// Removes the checkpoints of steps after `step`, for a run that continues from there and will write
// its own, and the link to the best if it leads to one of them.
absl::Status RemoveCheckpointsAfter(const std::string& checkpoints, uint64_t step);

// Moves the checkpoints of steps after `step`, with a copy of the epochs beside them, into a folder
// left-STEP there, or left-STEP-2 and so on. Returns its path; empty if there is none to move.
absl::StatusOr<std::string> SetAsideCheckpointsAfter(const std::string& checkpoints, uint64_t step);

// Writer of one checkpoint. Several threads may write files at once; the other functions are for
// one thread. Unless Commit succeeds, the destructor removes everything.
class CheckpointWriter {
 public:
  // Makes checkpoints/step-N.tmp and its parent folders. An older folder of that name is removed.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Begin(const std::string& checkpoints,
                                                                 uint64_t step);
  ~CheckpointWriter();

  // Writes and syncs the file that `write` hands to its sink in pieces. Fills in bytes and sha256
  // of `file`, whose name must be a plain file name. Errors name the file, or are those of `write`.
  absl::Status Write(CheckpointFile* file,
                     const std::function<absl::Status(const FileSink&)>& write) const;

  // Writes the files `beside` (name to content), model.safetensors.index.json, which maps tensors
  // of the part "model" to files, and the manifest. Then gives the folder its name. A checkpoint of
  // the same step is exchanged atomically. File systems that cannot exchange folders (NFS) need two
  // renames; a process killed between them leaves no checkpoint of that step.
  absl::Status Commit(const CheckpointManifest& manifest,
                      const std::map<std::string, std::string>& beside);

 private:
  CheckpointWriter(std::string checkpoints, uint64_t step);
  // Writes what Commit adds, and syncs the folder.
  absl::Status WriteRest(const CheckpointManifest& manifest,
                         const std::map<std::string, std::string>& beside) const;

  const std::string checkpoints_;
  const uint64_t step_;
  const std::string temporary_;  // path; removed by the destructor unless Commit renamed it
  bool committed_ = false;
};

}  // namespace thinwire
