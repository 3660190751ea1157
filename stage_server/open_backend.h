// Opens the backend that computes a run: the CPU's or a plugin's. A plugin is opened when a run
// first asks for it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

struct BackendRequest {
  std::string device = "auto";  // spelled as in an experiment file
  OpsOptions ops;
  int threads = 1;  // threads that compute on the CPU
};

// Opens the backend. If `cuda_plugin` is empty, backend/load.h says where it looks. InvalidArgument
// for threads outside 1 to 1024, an unknown device text, a device that does not exist, and tf32 on
// the CPU. Otherwise the error tells why the device cannot be opened (backend/load.h).
absl::StatusOr<Backend> OpenBackend(const BackendRequest& request, const std::string& cuda_plugin);

}  // namespace thinwire
