// The folder of one run: what stands in it, and that it is really written.
//
//   experiment.yaml  the resolved experiment       summary.json  outcome, epochs, boundaries
//   metrics.jsonl    a line per step and epoch     targets.json  where Prometheus scrapes
//   traffic.jsonl    a line per step, cut and direction
//   logs/            one file per local stage      model/        the trained parameters
//   checkpoints/     from which the run goes on (coordinator/checkpoint/)
//   captures/        tensors of chosen steps, if the experiment asks for them
//   trace.json       what all stages did in some steps, if somebody asks for it
//   .thinwire        the mark of such a folder; made first but for the lock, it stays with the rest
//   .thinwire.lock   held by the process that writes the run
//   .thinwire.lease  of its user only: what a session needs to take its stages over
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
#include "coordinator/files/file_lock.h"
#include "coordinator/files/json_lines.h"
#include "proto/checkpoint.pb.h"
#include "proto/coordinator.pb.h"

namespace thinwire {

// NotFound says that no run is recorded in `dir`, and why.
absl::Status CheckRecorded(const std::string& dir);

// Every error names the file and what the system said. After an error the files keep what was
// written before. One thread at a time.
class RunRecord {
 public:
  // Makes `dir` (and its parents) ready for a new run. AlreadyExists when a run stands there, or
  // what is left of one, unless `overwrite`: then its files are removed, and nothing else in the
  // folder is. AlreadyExists in any case when the folder has files of these names but no mark, and
  // when another record of the folder is open, here or in another process.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Create(const std::string& dir, bool overwrite);
  // The run that stands in `dir`, to go on with. NotFound when none does; errors of the lock as
  // Create's.
  static absl::StatusOr<std::unique_ptr<RunRecord>> Open(const std::string& dir);

  const std::string& dir() const { return dir_; }
  std::string logs_dir() const { return dir_ + "/logs"; }
  std::string model_dir() const { return dir_ + "/model"; }
  std::string checkpoints_dir() const { return dir_ + "/checkpoints"; }
  std::string experiment_path() const { return dir_ + "/experiment.yaml"; }
  // Where a session keeps what it needs to take its stages over.
  std::string lease_path() const { return dir_ + "/.thinwire.lease"; }

  absl::Status WriteExperiment(const std::string& yaml);

  // One line of metrics.jsonl each, handed to the system before the call returns.
  absl::Status Append(const StepRecord& step);
  absl::Status Append(const EpochRecord& epoch);

  // The same of traffic.jsonl.
  absl::Status Append(const std::vector<TrafficRecord>& traffic);

  // Puts the bytes of both files into *progress. Cut takes off again what is behind so many, and a
  // line that its writer did not end.
  absl::Status Measure(RunProgress* progress) const;
  absl::Status Cut(const RunProgress& progress);

  // captures/step-N.safetensors of the stages' files, tensors in order of their names. DataLoss
  // names the stage whose file is malformed, and the step.
  absl::Status WriteCapture(uint64_t step, const std::vector<std::string>& files);

  // Replaces trace.json by what `write` hands to its sink.
  absl::Status WriteTrace(const std::function<absl::Status(const FileSink&)>& write);

  // Replaces summary.json as a whole: a reader sees the old or the new one.
  absl::Status WriteSummary(const Summary& summary);

  // `stages`: the stages' metrics addresses, host:port, empty where unknown.
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
