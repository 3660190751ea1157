// `thinwire doctor`: checks whether stage servers and the links between them are fit for a run.
#pragma once

#include <string>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// Arguments of the command.
struct DoctorFlags {
  SessionOptions session;
  double min_mbit = 10;         // least rate of each link, in each direction
  std::string format = "text";  // or json
};

// Prints the findings and returns the process's exit code (exit_code.h), which is 1 if something is
// wrong. Explains on stderr if nothing could be asked at all. Must be called on the main thread,
// before gRPC is used (see Session::Start).
int DoctorCommand(const DoctorFlags& flags, Interruption* interruption);

}  // namespace thinwire
