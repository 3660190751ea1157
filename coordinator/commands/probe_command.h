// `thinwire probe`: measures how codecs change the gradients of a run or an experiment.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Arguments of the command.
struct ProbeFlags {
  std::string target;                  // folder of a run, or path of an experiment file
  std::vector<std::string> overrides;  // path=value
  int batches = 4;
  std::vector<std::string> codecs;  // as ParseProbeCodec reads them
  // Mean bits per element, to be divided among all directions of all cuts; 0: no budget.
  double budget = 0;
  std::string parameters;        // JSON parameters of libraries among the codecs
  std::string levels;            // path of a file of codecs; empty: none
  std::string format;            // md, csv, json, yaml; empty: by the file's ending, md on stdout
  std::vector<std::string> out;  // files; none: stdout
  SessionOptions session;
};

// Prints progress and errors to stderr and returns the process's exit code (exit_code.h). A report
// that cannot be written to all of `out` is also printed on stdout. Must be called on the main
// thread, before gRPC is used (see Session::Start).
int ProbeCommand(const ProbeFlags& flags, Interruption* interruption);

}  // namespace thinwire
