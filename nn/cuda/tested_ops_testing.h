// The GPU that tests hold against the CPU.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire {

// The test program links one of two definitions: that of emulated_ops_testing.cc, the emulated GPU,
// or that of backend/, any plugin's. Both throw, and so fail the test, if nothing opens.
Device* TestedDevice();  // the same in every call
std::unique_ptr<Ops> NewTestedOps(const OpsOptions& options = {});

}  // namespace thinwire
