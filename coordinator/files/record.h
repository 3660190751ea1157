// The folder of one run: its files, and writing them so that errors are noticed.
//
//   experiment.yaml  the resolved experiment       summary.json  outcome, epochs, boundaries
//   metrics.jsonl    a line per step, evaluation   targets.json  where Prometheus scrapes
//                    and epoch
//   traffic.jsonl    a line per step, cut and direction
//   logs/            one file per local stage      model/        the trained parameters
//   checkpoints/     from which the run can continue (coordinator/checkpoint/)
//   captures/        tensors of chosen steps, if the experiment asks for them
//   trace.json       what all stages did in some steps, if asked for
//   .thinwire        marks such a folder; created first but for the lock, never removed
//   .thinwire.lock   held by the process that writes the run
//   .thinwire.lease  readable by its user only: what a session needs to take over its stages
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "base/owned_descriptor.h"
#include "coordinator/files/file_lock.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// Writer of a file with one JSON object a line that grows while a run goes on. Errors name the file
// and the system's message. One thread at a time.
class JsonLines {
 public:
  // Opens `path`; creates it if needed.
  static absl::StatusOr<std::unique_ptr<JsonLines>> Open(const std::string& path);

  // Passes `lines`, which include their line ends, to the system. DataLoss if the file was removed
  // or replaced.
  absl::Status Append(const std::string& lines);

  // Returns the size of the file.
  absl::StatusOr<uint64_t> Bytes() const;
  // Truncates the file to `bytes`, and drops an incomplete last line before that.
  absl::Status Cut(uint64_t bytes);

 private:
  JsonLines(std::string path, int file) : path_(std::move(path)), file_(file) {}

  const std::string path_;
  const OwnedDescriptor file_;
};

// Returns the time now as summaries, manifests and events have it: "2026-01-31T23:59:59Z".
std::string UtcNow();

// Returns NotFound, with the reason, if no run is recorded in `dir`.
absl::Status CheckRecorded(const std::string& dir);

// The files of one run. Every error names the file and the system's message. After an error the
// files keep what was written before. One thread at a time.
class RunRecord {
 public:
  // Prepares `dir`, and its parents, for a new run. AlreadyExists if a run, or the rest of one, is
  // there, unless `overwrite`: then its files are removed and no others. AlreadyExists in any case
  // if the folder has files of these names but no mark, or if another record of the folder is open
  // in any process.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Create(const std::string& dir, bool overwrite);
  // Opens the run in `dir` to continue it. NotFound if there is none; errors of the lock as in
  // Create.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Open(const std::string& dir);

  const std::string& dir() const { return dir_; }
  std::string logs_dir() const { return dir_ + "/logs"; }
  std::string model_dir() const { return dir_ + "/model"; }
  std::string adapter_dir() const { return dir_ + "/adapter"; }
  std::string checkpoints_dir() const { return dir_ + "/checkpoints"; }
  // Returns the path of the file in which a session keeps what it needs to take over its stages.
  std::string lease_path() const { return dir_ + "/.thinwire.lease"; }

  absl::Status WriteExperiment(const std::string& yaml);

  // Append one line to metrics.jsonl, passed to the system before the call returns.
  absl::Status Append(const StepRecord& step);
  absl::Status Append(const EvaluationRecord& evaluation);
  absl::Status Append(const EpochRecord& epoch);

  // Does the same for traffic.jsonl.
  absl::Status Append(const std::vector<TrafficRecord>& traffic);

  // Store the sizes of both files in *progress (Measure), or truncate both to the sizes in
  // `progress` and drop incomplete last lines (Cut).
  absl::Status Measure(RunProgress* progress) const;
  absl::Status Cut(const RunProgress& progress);

  // Writes captures/step-N.safetensors from the stages' files, tensors in the order of their names.
  // DataLoss names the stage whose file is malformed, and the step.
  absl::Status WriteCapture(uint64_t step, const std::vector<std::string>& files);

  // Replaces trace.json by what `write` hands to its sink.
  absl::Status WriteTrace(const std::function<absl::Status(const FileSink&)>& write);

  // Replaces summary.json as a whole: a reader sees the old file or the new one.
  absl::Status WriteSummary(const Summary& summary);

  // Writes targets.json. `stages` are the stages' metrics addresses, host:port, empty where
  // unknown.
  absl::Status WriteTargets(const std::string& coordinator, const std::vector<std::string>& stages);

 private:
  RunRecord(std::string dir, std::unique_ptr<FileLock> lock)
      : dir_(std::move(dir)), lock_(std::move(lock)) {}
  static absl::StatusOr<std::unique_ptr<RunRecord>> Make(const std::string& dir,
                                                         std::unique_ptr<FileLock> lock);

  std::string dir_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<JsonLines> metrics_, traffic_;
};

}  // namespace thinwire
