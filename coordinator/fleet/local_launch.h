// How an experiment's stage servers are started on this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/fleet/launcher.h"
#include "proto/experiment.pb.h"

namespace thinwire {

// Where stage_server stands relative to `own_binary` (/path/coordinator/thinwire): beside it, or in
// ../stage_server/. NotFound names both paths.
absl::StatusOr<std::string> FindStageServer(const std::string& own_binary);

// For the resolved `experiment`; cuda_plugin, logs_dir and interrupt_fd are left to the caller.
// `binary` is the stage server's path; empty: look beside our own, NotFound names the paths.
// `libraries` are codec plug-ins besides the experiment's; InvalidArgument where two have one name.
absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, const std::string& binary,
                                          std::vector<std::string> libraries = {});

}  // namespace thinwire
