// What the process ends with; scripts rely on these.
#pragma once

namespace thinwire {

enum ExitCode {
  kExitDone = 0,
  kExitFailed = 1,  // the run failed
  kExitUsage = 2,   // wrong flags or experiment file
  kExitInterrupted = 130,
};

}  // namespace thinwire
