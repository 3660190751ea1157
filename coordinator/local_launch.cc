#include "coordinator/local_launch.h"

#include <filesystem>
#include <thread>
#include <vector>

#include "base/status.h"
#include "coordinator/threads.h"

namespace thinwire {

absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, const std::string& binary) {
  LaunchOptions options;
  options.binary = binary;
  if (options.binary.empty()) {
    ASSIGN_OR_RETURN(options.binary,
                     FindStageServer(std::filesystem::read_symlink("/proc/self/exe").string()));
  }
  const PipelineConfig& pipeline = experiment.pipeline();
  options.stages = static_cast<int>(pipeline.stages());
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const std::vector<StageHost> hosts(pipeline.stages(), {"", cores});
  options.threads =
      ThreadsPerStage(pipeline.threads(), static_cast<int>(pipeline.microbatches()), hosts).front();
  options.tcp = pipeline.transport() == "tcp";
  return options;
}

}  // namespace thinwire
