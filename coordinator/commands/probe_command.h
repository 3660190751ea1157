// `thinwire probe`: from a run or an experiment to tables of how its gradients take codecs.
#pragma once

#include <string>
#include <vector>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// What the command line says.
struct ProbeFlags {
  std::string target;                  // folder of a run, or path of an experiment file
  std::vector<std::string> overrides;  // path=value
  int batches = 4;
  std::vector<std::string> codecs;  // as ParseProbeCodec takes them
  // Mean bits per element of all directions of all cuts, to be shared among them; 0: nothing is.
  double budget = 0;
  std::string parameters;        // JSON for libraries among them
  std::string levels;            // path of a file of them; empty: none
  std::string format;            // md, csv, json, yaml; empty: by the file's ending, md on stdout
  std::vector<std::string> out;  // files; none: stdout
  SessionOptions session;
};

// Says how far it is and what went wrong on stderr and returns the process's exit code
// (exit_code.h). A report that cannot be written to all of `out` is printed on stdout too. To be
// called on the main thread and before gRPC is used (see Session::Start).
int ProbeCommand(const ProbeFlags& flags, Interruption* interruption);

}  // namespace thinwire
