// Options for starting an experiment's stage servers on this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/launcher.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Finds stage_server relative to `own_binary` (/path/coordinator/thinwire): beside it, or in
// ../stage_server/. NotFound names both paths.
absl::StatusOr<std::string> FindStageServer(const std::string& own_binary);

// Returns the options for the resolved `experiment`, each stage of which `carriers` servers have;
// the caller sets cuda_plugin, logs_dir and
// interrupt_fd. `binary` is the path of the stage server; if it is empty, FindStageServer looks for
// it, with its errors. `libraries` are codec plug-ins besides the experiment's. InvalidArgument if
// two libraries have one name.
absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, int carriers,
                                          const std::string& binary,
                                          std::vector<std::string> libraries = {});

}  // namespace thinwire
