// `thinwire codecs --conformance`: checks the promises of a codec, one process per check.
#pragma once

#include "compress/spec.h"
#include "coordinator/session/interruption.h"

namespace thinwire {

// Prints PASS or FAIL for each check and returns the process's exit code. A check that crashes or
// takes longer than two minutes fails. A signal ends the current check and the command.
int ConformanceCommand(const CodecSpec& spec, Interruption* interruption);

}  // namespace thinwire
