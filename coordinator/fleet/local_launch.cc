#include "coordinator/fleet/local_launch.h"

#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/cores.h"
#include "base/file.h"
#include "base/path.h"
#include "base/status.h"
#include "config/local_paths.h"
#include "coordinator/fleet/threads.h"

namespace thinwire {
namespace {

constexpr char kOwnBinary[] = "/proc/self/exe";

// Returns the folders of the libraries, in which the stages look for them by file name.
absl::StatusOr<std::vector<std::string>> FoldersOf(const std::vector<std::string>& libraries) {
  std::map<std::string, std::string> folder_of;
  std::set<std::string> folders;
  for (const std::string& path : libraries) {
    std::error_code error;
    const auto library = std::filesystem::absolute(WithHome(path), error).lexically_normal();
    if (error) return FileError(path, "cannot follow", error.value());
    const std::string folder = library.parent_path().string();
    if (folder.find(':') != folder.npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("codec plug-in ", path, ", want a folder without ':', which is ", folder));
    }
    const std::string other = folder_of.emplace(library.filename().string(), folder).first->second;
    if (other != folder) {
      return absl::InvalidArgumentError(absl::StrCat("codec plug-in ", path,
                                                     " has the file name of another, in ", other,
                                                     ", want different ones"));
    }
    folders.insert(folder);
  }
  for (const auto& [name, folder] : folder_of) {
    for (const std::string& other : folders) {
      std::error_code ignored;
      if (other == folder || !std::filesystem::exists(absl::StrCat(other, "/", name), ignored)) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("codec plug-in ", name, " is in ", folder, " and in ", other,
                       ", where the experiment's other plug-ins are; want different file names"));
    }
  }
  return std::vector<std::string>(folders.begin(), folders.end());
}

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

absl::StatusOr<LaunchOptions> LocalLaunch(const Experiment& experiment, int carriers,
                                          const std::string& binary,
                                          std::vector<std::string> libraries) {
  LaunchOptions options;
  options.binary = binary;
  if (options.binary.empty()) {
    std::error_code error;
    const std::filesystem::path own = std::filesystem::read_symlink(kOwnBinary, error);
    if (error) return FileError(kOwnBinary, "cannot read the link", error.value());
    ASSIGN_OR_RETURN(options.binary, FindStageServer(own.string()));
  }
  Experiment copy = experiment;
  for (const StagePath& plugin : StagePathsOf(&copy).plugins) libraries.push_back(*plugin.value);
  ASSIGN_OR_RETURN(options.codec_plugins, FoldersOf(libraries));
  const PipelineConfig& pipeline = experiment.pipeline();
  options.stages = static_cast<int>(pipeline.stages());
  options.carriers = carriers;
  const std::vector<StageHost> hosts(static_cast<size_t>(options.servers()), {"", UsableCores()});
  const int at_once = carriers * static_cast<int>(pipeline.microbatches());
  options.threads = ThreadsPerStage(pipeline.threads(), at_once, hosts).front();
  options.tcp = pipeline.transport() == "tcp";
  return options;
}

}  // namespace thinwire
