// Makes the backend under test the GPU of the tests in compress/cuda and nn.
#include "backend/testing.h"
#include "compress/cuda/twin_testing.h"
#include "nn/cuda/tested_ops_testing.h"

namespace thinwire {

Twin GpuTwin() { return {BackendUnderTest().device, BackendUnderTest().kernels}; }

Device* TestedDevice() { return BackendUnderTest().device; }

std::unique_ptr<Ops> NewTestedOps(const OpsOptions& options) {
  return BackendUnderTest().NewOps(options).value();  // throws if they cannot be made
}

}  // namespace thinwire
