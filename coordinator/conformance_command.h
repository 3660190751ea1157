// `thinwire codecs --conformance`: the promises of a codec, one process per check.
#pragma once

#include "compress/spec.h"

namespace thinwire {

// Prints PASS or FAIL for each check and returns the process's exit code. A check that crashes, or
// takes longer than two minutes, fails.
int ConformanceCommand(const CodecSpec& spec);

}  // namespace thinwire
