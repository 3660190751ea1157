// What a stage server tells of its runs: lines of the log, and errors counted by kind. Any thread.
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
  // Both outlive the journal. `registry` gets the counter of errors.
  Journal(Log* log, prometheus::Registry* registry) : log_(*log), errors_({}, registry) {}

  // `holder`: who asks, and from where. `in_force`: the lease that stands against it, or empty.
  void LeaseTaken(const AcquireRequest& request, const std::string& holder);
  void LeaseRefused(const AcquireRequest& request, const std::string& holder,
                    const std::string& in_force, const absl::Status& why);
  // A call of who may not make it, by certificate or token.
  void CallerRefused(const std::string& peer, const absl::Status& why);
  void LeaseExpired(const LogSubject& subject);
  void LeaseReleased(const LogSubject& subject);

  // `note` as in Backend; told when it is another than before.
  void DeviceTaken(const LogSubject& subject, const std::string& note);
  // A line about links, told once.
  void LinkNote(const LogSubject& subject, const std::string& note);
  void Configured(const LogSubject& subject, const StageSpec& spec, const ConfigureRequest& request,
                  const ConfigureResponse& response);
  void Connected(const LogSubject& subject, const std::string& downstream);
  void EpochBegins(const LogSubject& subject, const TrainRequest& request);
  void EpochEnds(const LogSubject& subject, const TrainRequest& request, double seconds);
  // `report`: the last stage's.
  void Evaluated(const LogSubject& subject, const EvaluateRequest& request,
                 const std::optional<EvaluationReport>& report, double seconds);
  // Of a call ("Train") that its coordinator has ended: no error of this stage.
  void Stopped(const LogSubject& subject, const char* call, const absl::Status& reason);
  void Failed(const LogSubject& subject, const char* call, const absl::Status& error);

 private:
  Log& log_;
  ErrorCounter errors_;
  std::mutex mutex_;
  std::string told_note_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> told_of_links_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace thinwire
