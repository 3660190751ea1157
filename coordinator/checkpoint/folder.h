// A run's checkpoints on disk: RUN/checkpoints/step-N, a folder each, which docs/checkpoints.md
// describes. One is written under the name step-N.tmp and gets its own when all of it is on the
// disk, the manifest last: whatever ends the process, what has the name is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "coordinator/checkpoint/manifest.h"
#include "proto/checkpoint.pb.h"

namespace thinwire {

// StatePart.tensors of parameters and running statistics.
inline constexpr char kModelTensors[] = "model";

// "RUN/checkpoints/step-12".
std::string CheckpointPath(const std::string& checkpoints, uint64_t step);

// The steps of the checkpoints in that folder, ascending; none where there is no such folder. What
// is not named as one is not looked at.
absl::StatusOr<std::vector<uint64_t>> ListCheckpoints(const std::string& checkpoints);

// Errors as ParseManifest's; DataLoss too where there is no manifest, or one of another step than
// the folder's name says.
absl::StatusOr<CheckpointManifest> ReadManifest(const std::string& checkpoint);

// Reads every file that the manifest names, and its epochs: DataLoss names the first file that is
// missing, of another size or of another digest, with both.
absl::Status VerifyCheckpoint(const std::string& checkpoint, const CheckpointManifest& manifest);

// The newest checkpoint that is whole, its files included; its manifest's progress has the epochs.
// `skipped` gets a line for each newer one that is not. NotFound if there is none; DataLoss if none
// is whole, with what is wrong with each.
struct FoundCheckpoint {
  std::string path;
  CheckpointManifest manifest;
  std::vector<std::string> skipped;
};
absl::StatusOr<FoundCheckpoint> NewestCheckpoint(const std::string& checkpoints);

// Removes all but the newest `keep`, and what was left half written; not while one is written. One
// that is removed has lost its name before its first file.
absl::Status PruneCheckpoints(const std::string& checkpoints, uint32_t keep);

// Removes those of steps after `step`: for a run that goes on from there, and is to keep what it
// writes rather than them.
absl::Status RemoveCheckpointsAfter(const std::string& checkpoints, uint64_t step);

// One checkpoint that is being written. Files may be written by several threads at once; the rest
// is for one. Without Commit, nothing is left of it when the object goes.
class CheckpointWriter {
 public:
  // Makes checkpoints/step-N.tmp, and the folders that lead there; what stands there is removed.
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Begin(const std::string& checkpoints,
                                                                 uint64_t step);
  ~CheckpointWriter();

  // Writes and syncs the file that `write` hands to its sink in pieces. Fills in bytes and sha256
  // of `file`, whose name is a plain file name. Errors name the file, or are those of `write`.
  absl::Status Write(CheckpointFile* file,
                     const std::function<absl::Status(const FileSink&)>& write) const;

  // Writes `beside`, whole files by name; model.safetensors.index.json, which says in which file of
  // the part "model" a tensor stands; the manifest; and gives the folder its name. One of the same
  // step is replaced in one step; on file systems that cannot exchange folders (NFS), where the
  // process is killed between two renames, none of that step is left.
  absl::Status Commit(const CheckpointManifest& manifest,
                      const std::map<std::string, std::string>& beside);

 private:
  CheckpointWriter(std::string checkpoints, uint64_t step);
  // All that Commit writes, and syncs the folder.
  absl::Status WriteRest(const CheckpointManifest& manifest,
                         const std::map<std::string, std::string>& beside) const;

  const std::string checkpoints_;
  const uint64_t step_;
  const std::string temporary_;  // removed unless it got its name
  bool committed_ = false;
};

}  // namespace thinwire
