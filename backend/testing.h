// The backend that tests hold against the CPU: the plugin named by THINWIRE_PLUGIN, else the
// emulated one of this build.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "backend/plugin.h"

namespace thinwire {

struct TestedBackend {
  BackendPlugin* plugin = nullptr;
  Device* device = nullptr;  // its first
  CodecKernels* kernels = nullptr;

  absl::StatusOr<std::unique_ptr<Ops>> NewOps(const OpsOptions& options = {}) const;
};

// Opened once per process. Throws std::runtime_error, and so fails the test, if it does not open.
const TestedBackend& BackendUnderTest();

}  // namespace thinwire
