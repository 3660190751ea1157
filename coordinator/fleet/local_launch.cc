#include "coordinator/fleet/local_launch.h"

#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "base/status.h"
#include "coordinator/files/file.h"
#include "coordinator/fleet/threads.h"

namespace thinwire {
namespace {

constexpr char kOwnBinary[] = "/proc/self/exe";

}  // namespace

absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, const std::string& binary) {
  LaunchOptions options;
  options.binary = binary;
  if (options.binary.empty()) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::read_symlink(kOwnBinary, error);
    if (error) return FileError(kOwnBinary, "cannot read the link", error.value());
    ASSIGN_OR_RETURN(options.binary, FindStageServer(own.string()));
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
