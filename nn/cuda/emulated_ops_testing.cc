#include <stdexcept>

#include "nn/cuda/ops.h"
#include "nn/cuda/tested_ops_testing.h"

namespace thinwire {
namespace {

void Require(const Error& error) {
  if (!error.ok()) throw std::runtime_error(error.message);
}

CudaDevice* EmulatedDevice() {
  static CudaDevice* const device = [] {
    CudaDevice* opened = nullptr;
    Require(NewCudaDevice(/*index=*/0, &opened));
    return opened;
  }();
  return device;
}

}  // namespace

Device* TestedDevice() { return EmulatedDevice(); }

std::unique_ptr<Ops> NewTestedOps(const OpsOptions& options) {
  Ops* ops = nullptr;
  Require(NewCudaOps(EmulatedDevice(), options, &ops));
  return std::unique_ptr<Ops>(ops);
}

}  // namespace thinwire
