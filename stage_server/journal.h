// Records what happens to a server's runs: lines of the log, and errors counted by kind. Any
// thread.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "monitoring/errors.h"
#include "prometheus/registry.h"
#include "proto/stage.pb.h"
#include "stage_server/log.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

class Journal {
 public:
  // Makes a journal; both arguments outlive it. `registry` gets the counter of errors.
  Journal(Log* log, prometheus::Registry* registry) : log_(*log), errors_({}, registry) {}

  // `holder` says who asks, and from where. `in_force` names the lease that stands in the way, or
  // is empty.
  void LeaseTaken(const AcquireRequest& request, const std::string& holder);
  void LeaseRefused(const AcquireRequest& request, const std::string& holder,
                    const std::string& in_force, const absl::Status& why);
  // Records a call refused by certificate or token.
  void CallerRefused(const std::string& peer, const absl::Status& why);
  // Records that `peer` asks the server to end, and which run it is to leave; empty: none.
  void Drained(const std::string& peer, const std::string& run);
  void LeaseExpired(const LogSubject& subject);
  void LeaseReleased(const LogSubject& subject);

  // Records `note` (as in Backend) if it differs from the one before.
  void DeviceTaken(const LogSubject& subject, const std::string& note);
  // Records a line about what is less than it could be, each only once. `event` is "link" or
  // "trace".
  void Note(const char* event, const LogSubject& subject, const std::string& note);
  void Configured(const LogSubject& subject, const StageSpec& spec, const ConfigureRequest& request,
                  const ConfigureResponse& response);
  void Connected(const LogSubject& subject, const std::string& downstream);
  void StateFetched(const LogSubject& subject, const std::string& from, double seconds);
  void EpochBegins(const LogSubject& subject, const TrainRequest& request);
  void EpochEnds(const LogSubject& subject, const TrainRequest& request, double seconds);
  // `report` is set at the last stage only.
  void Evaluated(const LogSubject& subject, const EvaluateRequest& request,
                 const std::optional<EvaluationReport>& report, double seconds);
  // Records that the coordinator ended `call` ("Train"), which is no error of this stage.
  void Stopped(const LogSubject& subject, const char* call, const absl::Status& reason);
  void Failed(const LogSubject& subject, const char* call, const absl::Status& error);

 private:
  Log& log_;
  ErrorCounter errors_;
  std::mutex mutex_;
  std::string told_note_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> told_notes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
