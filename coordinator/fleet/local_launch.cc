#include "coordinator/fleet/local_launch.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/fleet/threads.h"

namespace thinwire {
namespace {

constexpr char kOwnBinary[] = "/proc/self/exe";

}  // namespace

absl::StatusOr<std::string> FindStageServer(const std::string& own_binary) {
  const std::string folder = std::filesystem::path(own_binary).parent_path().string();
  const std::string beside = folder + "/stage_server";
  const std::string built =
      std::filesystem::path(folder).parent_path().string() + "/stage_server/stage_server";
  for (const std::string& path : {built, beside}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return absl::NotFoundError(absl::StrCat("no stage server at ", built, " nor at ", beside,
                                          "; say where it is with --stage_server"));
}

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
  const std::vector<StageHost> hosts(pipeline.stages(), {"", UsableCores()});
  options.threads =
      ThreadsPerStage(pipeline.threads(), static_cast<int>(pipeline.microbatches()), hosts).front();
  options.tcp = pipeline.transport() == "tcp";
  return options;
}

}  // namespace thinwire
