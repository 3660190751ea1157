// `thinwire doctor`: whether stage servers and the links between them are fit for a run.
#pragma once

#include <string>

#include "coordinator/session/interruption.h"
#include "coordinator/session/session.h"

namespace thinwire {

// What the command line says.
struct DoctorFlags {
  SessionOptions session;
  double min_mbit = 10;         // of each link, in each direction
  std::string format = "text";  // or json
};

// Prints what was found, also where something is wrong: 1 then. Says on stderr why nothing could be
// asked at all, and returns the process's exit code (exit_code.h). To be called on the main thread
// and before gRPC is used (see Session::Start).
int DoctorCommand(const DoctorFlags& flags, Interruption* interruption);

}  // namespace thinwire
