// The queue of runs that a server was given: waiting, running and ended ones.
//
// DIR/queue/RUN.json holds all that is known of a run. It is replaced as a whole before anybody is
// told of a change. So, however the server ends, the next one finds every run that was accepted;
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

// Result of a run that has ended.
struct RunEnd {
  int exit_code = 0;
  std::string error;               // message of a run that failed
  std::optional<TestRecord> test;  // its last evaluation
};

// Thread-safe. Errors name the file and the system's message; the queue is then as it was before.
class RunQueue {
 public:
  // Opens the queue in `dir` and makes missing folders. DataLoss for a file that is not a run's.
  static absl::StatusOr<std::unique_ptr<RunQueue>> Open(const std::string& dir);

  // Return the places of a run's results and of its output.
  std::string FolderOf(const std::string& run) const { return dir_ + "/runs/" + run; }
  std::string LogOf(const std::string& run) const { return dir_ + "/logs/" + run; }
  // Returns the path of the experiment file for a run; it is written when the run begins.
  std::string ExperimentOf(const std::string& run) const {
    return dir_ + "/queue/" + run + ".yaml";
  }

  // Adds resolved experiments, all of them or none. Returns the ids of their runs, NAME-NUMBER.
  absl::StatusOr<std::vector<std::string>> Submit(const std::vector<Experiment>& experiments);

  // Returns the next run for a group of stage servers and marks it as running. A run that was begun
  // before continues with its former servers, as its lease may still bind them. While they are
  // among `groups`, which are all groups there are, they are kept for it. An empty `group`: the run
  // starts its own stages.
  absl::StatusOr<std::optional<QueueEntry>> Begin(const std::string& group,
                                                  const std::vector<std::string>& groups);
  // Marks a run as ended. If that cannot be written, it counts as ended for this server, but not
  // for one that follows.
  absl::Status End(const std::string& run, const RunEnd& end);
  // Marks a run as not running and not ended: the next server continues it.
  void Suspend(const std::string& run);

  // Stops the begin of runs because of `why`; an empty `why` allows it again.
  void Hold(const std::string& why);

  // Cancels a run. One that waits ends at once, with exit code 130; for one that runs IsCancelled
  // becomes true. An ended run stays as it is. NotFound names the most similar id.
  absl::Status Cancel(const std::string& run);
  bool IsCancelled(const std::string& run) const;

  // Returns the state of a run. NotFound as in Cancel.
  absl::StatusOr<QueuedRunStatus> Find(const std::string& run) const;
  std::vector<QueuedRunStatus> List() const;
  // Returns the number of runs in each state (QueuedRunStatus).
  std::map<std::string, size_t> Count() const;

  // Waits until the run has ended, the queue is closed or the time is over. Returns whether the run
  // has ended.
  bool AwaitEnd(const std::string& run, absl::Duration patience) const;
  // Wakes all that wait in AwaitEnd.
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
  std::vector<Run> runs_ ABSL_GUARDED_BY(mutex_);  // in the order of numbers
  std::string held_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace thinwire
