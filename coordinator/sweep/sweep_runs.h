// The runs of a sweep, each a `thinwire run` of its own, one after the other or several at once, in
// one folder that remembers what is finished.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/results/outcome.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/sweep/rows.h"
#include "coordinator/sweep/standing.h"

namespace thinwire {

struct PlannedRun {
  SweepRun run;
  Standing standing = Standing::kAbsent;
  // The group of stage servers that it had, of those that are given.
  std::optional<size_t> bound_to = std::nullopt;
  bool is_running = false, has_failed = false;
};

// What stands of these runs in the sweep's folder `dir`. Errors of StandingOf.
absl::StatusOr<std::vector<PlannedRun>> PlanRuns(const std::string& dir,
                                                 std::vector<SweepRun> runs);

struct SweepPlace {
  std::string dir;
  int jobs = 1;  // runs at once on this machine
  // "HOST:PORT,HOST:PORT": the stage servers of one run at a time; empty: stages are started here.
  std::vector<std::string> stages;
  SessionOptions session;  // of its stages nothing: `stages` has them
  FILE* said_to = stdout;  // what begins and ends, or a line for each run on a terminal
};

struct SweptRuns {
  std::vector<Outcome> outcomes;  // of finished runs, in the order of the runs
  size_t done = 0, found = 0;     // now; before
  // A run, or its place in the database, and why.
  std::vector<std::pair<std::string, std::string>> failures;
};

// Where a sweep in `dir` has the folder of a run, and the database.
std::string RunFolderOf(const std::string& dir, const std::string& run);
std::string DatabaseOf(const std::string& dir);

// Makes the sweep's folders and takes its lock: what the system says where that cannot be,
// AlreadyExists while another process has it.
absl::StatusOr<std::unique_ptr<FileLock>> TakeSweepFolder(const std::string& dir);

// Runs those that are not finished, and brings results.sqlite up to date. A run that fails stops no
// other. Cancelled when interrupted: all runs have ended then, and the same call goes on. Other
// errors are of the database or of another experiment's run in the folder (InvalidArgument). On the
// main thread, with which the runs end.
absl::StatusOr<SweptRuns> RunSweep(const SweepPlace& place, std::vector<SweepRun> runs,
                                   Interruption* interruption);

}  // namespace thinwire
