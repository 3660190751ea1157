// `thinwire sweep`: runs several experiments with several seeds, one after the other or at once,
// and compares their results.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Arguments of the command.
struct SweepFlags {
  std::string file;                    // file of a sweep or of an experiment
  std::vector<std::string> overrides;  // path=value, for all rows
  std::vector<std::string> grids;      // FIELD=VALUE,VALUE
  std::vector<std::string> seeds;
  std::string only;  // regular expression that matches the whole names of rows to run; empty: all
  std::string out;   // folder; empty: runs/NAME
  std::string baseline;  // name of a row; empty: the sweep's, or the first
  int jobs = 1;          // number of runs at once, on this machine
  // Groups of stage servers, "HOST:PORT,HOST:PORT", each for one run at a time; empty: runs start
  // their own stages.
  std::vector<std::string> stages;
  bool list = false;        // True: show the state, run nothing.
  std::string export_kind;  // "csv": export the tables of the sweep's folder `file`, run nothing
  // Options for stage servers; its stages are ignored, as `stages` has them.
  SessionOptions session;
};

// Prints errors to stderr and returns the process's exit code (exit_code.h). Must be called on the
// main thread: the runs end with it.
int SweepCommand(const SweepFlags& flags, Interruption* interruption);

}  // namespace thinwire
