// The backend that tests compare with the CPU: the plugin that THINWIRE_PLUGIN names, else the
// emulated one of this build.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "backend/plugin.h"

namespace thinwire {

struct TestedBackend {
  BackendPlugin* plugin = nullptr;
  Device* device = nullptr;  // the plugin's first device
  CodecKernels* kernels = nullptr;

  absl::StatusOr<std::unique_ptr<Ops>> NewOps(const OpsOptions& options = {}) const;
};

// Returns the backend, which is opened once per process. Throws std::runtime_error, which fails the
// test, if it does not open.
const TestedBackend& BackendUnderTest();

}  // namespace thinwire
