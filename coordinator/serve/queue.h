// The runs that a server was given: which wait, which run, how the others ended.
//
// DIR/queue/RUN.json is all that is known of a run, and is replaced as a whole before anybody is
// told of a change: whatever ends the server, the next one finds every run that was accepted, and
// those that had not ended wait again, in their order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/experiment.pb.h"
#include "proto/queue.pb.h"

namespace thinwire {

// How a run ended.
struct RunEnd {
  int exit_code = 0;
  std::string error;               // of one that failed
  std::optional<TestRecord> test;  // its last evaluation
};

// Any thread. Errors name the file and what the system said; the queue is then as it was before.
class RunQueue {
 public:
  // Makes the folders that are missing. DataLoss for a file that is no run's.
  static absl::StatusOr<std::unique_ptr<RunQueue>> Open(const std::string& dir);

  // Where a run's results, and what it prints, go.
  std::string FolderOf(const std::string& run) const { return dir_ + "/runs/" + run; }
  std::string LogOf(const std::string& run) const { return dir_ + "/logs/" + run; }
  // The file that a run is given; written when it is begun.
  std::string ExperimentOf(const std::string& run) const {
    return dir_ + "/queue/" + run + ".yaml";
  }

  // Takes resolved experiments, all of them or none; returns the ids of their runs, NAME-NUMBER.
  absl::StatusOr<std::vector<std::string>> Submit(const std::vector<Experiment>& experiments);

  // The next run for a group of stage servers, which runs from now on. One that was begun before
  // goes on with the servers that it had, which its lease may bind still: they are kept for it
  // while they are among `groups`, all that there are. Empty groups: stages are the run's own.
  absl::StatusOr<std::optional<QueueEntry>> Begin(const std::string& group,
                                                  const std::vector<std::string>& groups);
  // It has ended. Where that cannot be written it has, but for a server that comes after this one.
  absl::Status End(const std::string& run, const RunEnd& end);
  // It runs no more, but has not ended: the next server goes on with it.
  void Suspend(const std::string& run);

  // Runs are not begun for now, and why; empty: they are.
  void Hold(const std::string& why);

  // A run that waits has ended then, with 130; of one that runs IsCancelled tells. What has ended
  // stays as it is. NotFound names the nearest.
  absl::Status Cancel(const std::string& run);
  bool IsCancelled(const std::string& run) const;

  // NotFound as above.
  absl::StatusOr<QueuedRunStatus> Find(const std::string& run) const;
  std::vector<QueuedRunStatus> List() const;
  // How many there are in each state (QueuedRunStatus).
  std::map<std::string, size_t> Count() const;

  // Until the run has ended, the queue is closed or the time is over. Whether it has ended.
  bool AwaitEnd(const std::string& run, absl::Duration patience) const;
  // Those that wait for an end do so no more.
  void Close();
  bool is_closed() const;

 private:
  struct Run {
    QueueEntry entry;
    bool is_running = false;

    bool has_ended() const { return entry.has_exit_code(); }
  };

  explicit RunQueue(std::string dir) : dir_(std::move(dir)) {}
  std::string FileOf(const std::string& run) const { return dir_ + "/queue/" + run + ".json"; }
  absl::Status Write(const QueueEntry& entry) const;
  absl::Status Read(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<size_t> IndexOf(const std::string& run) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  QueueEntry NewEntry(uint64_t number, const Experiment& experiment) const;
  QueuedRunStatus StatusOf(const Run& run, size_t waiting_before) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const std::string dir_;
  mutable absl::Mutex mutex_;
  std::vector<Run> runs_ ABSL_GUARDED_BY(mutex_);  // by number
  std::string held_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace thinwire
