// `thinwire sweep`: several experiments, each with several seeds, one after the other or several at
// once, and what they give side by side.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// What the command line says.
struct SweepFlags {
  std::string file;                    // of a sweep or an experiment
  std::vector<std::string> overrides;  // path=value, of all rows
  std::vector<std::string> grids;      // FIELD=VALUE,VALUE
  std::vector<std::string> seeds;
  std::string only;      // regular expression of the rows to run, whole names; empty: all
  std::string out;       // folder; empty: runs/NAME
  std::string baseline;  // row; empty: the sweep's, or the first
  int jobs = 1;          // runs at once, on this machine
  // "HOST:PORT,HOST:PORT": the stage servers of one run at a time; empty: stages are started here.
  std::vector<std::string> stages;
  bool list = false;        // says what stands, runs nothing
  std::string export_kind;  // "csv": of `file`, a sweep's folder, the tables; runs nothing
  // Of its stages nothing: `stages` has them.
  SessionOptions session;
};

// Says what went wrong on stderr and returns the process's exit code (exit_code.h). To be called on
// the main thread, with which the runs end.
int SweepCommand(const SweepFlags& flags, Interruption* interruption);

}  // namespace thinwire
