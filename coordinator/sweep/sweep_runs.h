// Running a sweep: each run is a `thinwire run` process, one after the other or several at once, in
// one folder that shows what is finished.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/files/file_lock.h"
#include "coordinator/results/outcome.h"
#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"
#include "coordinator/sweep/sweep_file.h"
#include "proto/experiment.pb.h"

namespace thinwire {

enum class Standing {
  kAbsent,      // nothing, or what was interrupted before the run began
  kUnfinished,  // it began, and can continue from its checkpoints
  kFinished,    // its summary says completed, with every epoch
};

// Returns the state of the run in `folder`, which should be a run of the resolved experiment
// `wanted`. InvalidArgument if it is another experiment's: names the folder and the first field
// that differs, with both values.
absl::StatusOr<Standing> StandingOf(const std::string& folder, const Experiment& wanted);

// A run and its state.
struct PlannedRun {
  SweepRun run;
  Standing standing = Standing::kAbsent;
  // Index of the group of stage servers that the run had, if it is among the given ones.
  std::optional<size_t> bound_to = std::nullopt;
  bool is_running = false, has_failed = false;
};

// Returns the state of these runs in the sweep's folder `dir`. Errors of StandingOf.
absl::StatusOr<std::vector<PlannedRun>> PlanRuns(const std::string& dir,
                                                 std::vector<SweepRun> runs);

// Folder and machines of a sweep's runs.
struct SweepPlace {
  std::string dir;
  int jobs = 1;  // number of runs at once, on this machine
  // Groups of stage servers, "HOST:PORT,HOST:PORT", each for one run at a time; empty: runs start
  // their own stages.
  std::vector<std::string> stages;
  SessionOptions session;  // its stages are ignored, as `stages` has them
  // Gets lines about begun and ended runs, or on a terminal a line for each run.
  FILE* said_to = stdout;
};

// Result of a sweep.
struct SweptRuns {
  std::vector<Outcome> outcomes;  // of finished runs, in the order of the runs
  size_t done = 0, found = 0;     // number of runs finished now, and of those finished before
  // Pairs of a run (or its row in the database) that failed, and the reason.
  std::vector<std::pair<std::string, std::string>> failures;
};

// Return the folder of a run, and the database, of a sweep in `dir`.
std::string RunFolderOf(const std::string& dir, const std::string& run);
std::string DatabaseOf(const std::string& dir);

// Makes the sweep's folders and takes its lock. Returns the system's error, or AlreadyExists while
// another process has the lock.
absl::StatusOr<std::unique_ptr<FileLock>> TakeSweepFolder(const std::string& dir);

// Runs what is not finished and brings results.sqlite up to date. A run that fails does not stop
// the others. Cancelled after an interruption: all runs have ended then, and the same call
// continues them. Other errors come from the database, or from a run of another experiment in the
// folder (InvalidArgument). Must be called on the main thread: the runs end with it.
absl::StatusOr<SweptRuns> RunSweep(const SweepPlace& place, std::vector<SweepRun> runs,
                                   Interruption* interruption);

}  // namespace thinwire
