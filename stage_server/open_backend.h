// Which backend computes a run: the CPU's, or that of a plugin, which is opened when a run first
// asks for it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nn/ops.h"
#include "stage_server/stage/stage.h"

namespace thinwire {

struct BackendRequest {
  std::string device = "auto";  // as in an experiment file
  OpsOptions ops;
  int threads = 1;  // that compute on the CPU
};

// `cuda_plugin` empty: where backend/load.h looks.
// InvalidArgument for threads outside 1 to 1024, for another text, for a device beyond those there
// are and for tf32 on the CPU; otherwise why the device cannot be opened (backend/load.h).
absl::StatusOr<Backend> OpenBackend(const BackendRequest& request, const std::string& cuda_plugin);

}  // namespace thinwire
