// The GPU that tests compare with the CPU.
#pragma once

#include <memory>

#include "nn/ops.h"

namespace thinwire {

// A test program links one of two definitions: the emulated GPU's (emulated_ops_testing.cc), or
// that of backend/ for any plugin. Both throw, and so fail the test, if nothing opens.
Device* TestedDevice();  // always returns the same device
std::unique_ptr<Ops> NewTestedOps(const OpsOptions& options = {});

}  // namespace thinwire
