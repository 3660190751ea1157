#include "stage_server/allowed_paths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/path.h"
#include "base/status.h"
#include "base/text.h"
#include "config/local_paths.h"
#include "data/file_list.h"
#include "data/masked_ids.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsBelow(const fs::path& path, const fs::path& folder) {
  const auto ends = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  const bool has_final_slash = ends.first != folder.end() && ends.first->empty();
  return ends.first == folder.end() || has_final_slash;
}

absl::StatusOr<fs::path> Absolute(const std::string& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(WithHome(path), error);
  if (error) return FileError(PrintableLine(path), "cannot follow", error.value());
  return absolute;
}

// Returns the absolute path without "..", with links followed as far as the path exists.
absl::StatusOr<fs::path> WhereItLeads(const std::string& path) {
  ASSIGN_OR_RETURN(const fs::path absolute, Absolute(path));
  std::error_code error;
  fs::path leads = fs::weakly_canonical(absolute, error);
  if (error) return FileError(PrintableLine(path), "cannot follow", error.value());
  return leads;
}

// Does the same, but keeps the name of a link to a file, beside which other files may belong to it.
absl::StatusOr<fs::path> WhereItStands(const std::string& path) {
  ASSIGN_OR_RETURN(const fs::path absolute, Absolute(path));
  std::error_code ignored;
  const bool is_link = fs::is_symlink(absolute, ignored) && !fs::is_directory(absolute, ignored);
  if (!is_link) return WhereItLeads(path);
  ASSIGN_OR_RETURN(const fs::path folder, WhereItLeads(absolute.parent_path().string()));
  return folder / absolute.filename();
}

// Puts the folder of this machine's cache in place of a name in the hub.
absl::Status FollowHubId(const StagePath& path) {
  ASSIGN_OR_RETURN(std::string folder, Annotated(HubFolderOr(*path.value), path.field));
  *path.value = std::move(folder);
  return absl::OkStatus();
}

// Returns an error if `leads`, where a path leads, is not below the folder.
absl::Status CheckBelow(const std::string& folder, const char* flag, const StagePath& path,
                        const fs::path& leads) {
  ASSIGN_OR_RETURN(const fs::path allowed, WhereItLeads(folder));
  if (IsBelow(leads, allowed)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(path.field, ": ", PrintableLine(*path.value), " leads to ",
                   PrintableLine(leads.string()), ", want a path below ", allowed.string(),
                   ", the folder that this server's ", flag, " names"));
}

absl::Status ConfineBelow(const std::string& folder, const char* flag, const StagePath& path) {
  ASSIGN_OR_RETURN(const fs::path leads, WhereItLeads(*path.value));
  RETURN_IF_ERROR(CheckBelow(folder, flag, path, leads));
  ASSIGN_OR_RETURN(const fs::path stands, WhereItStands(*path.value));
  if (path.has_files) RETURN_IF_ERROR(CheckBelow(folder, flag, path, stands));
  *path.value = (path.has_files ? stands : leads).string();
  return absl::OkStatus();
}

// Checks that none of the files that the path stands for, and no mask beside one, is a link out of
// the folder. Whoever reads them reports that there are none.
absl::Status ConfineLinks(const std::string& folder, const char* flag, const StagePath& path) {
  const absl::StatusOr<std::vector<std::string>> files = FilesAt(path.field, *path.value);
  for (const std::string& file : files.value_or(std::vector<std::string>())) {
    for (std::string read : {file, MaskBeside(file)}) {
      std::error_code ignored;
      if (!fs::is_symlink(read, ignored)) continue;
      RETURN_IF_ERROR(ConfineBelow(folder, flag, {path.field, &read}));
    }
  }
  return absl::OkStatus();
}

absl::Status FindLibrary(const std::vector<std::string>& folders, const StagePath& path) {
  const std::string name = fs::path(*path.value).filename().string();
  if (name.empty() || name == "." || name == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat(path.field, ": ", PrintableLine(*path.value), ", want the path of a library"));
  }
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(const fs::path leads, WhereItLeads(absl::StrCat(folder, "/", name)));
    std::error_code error;
    if (!fs::exists(leads, error)) continue;
    RETURN_IF_ERROR(CheckRegular(leads.string()));
    *path.value = leads.string();
    return absl::OkStatus();
  }
  const std::string where = folders.empty()
                                ? "this server opens none: its --codec_plugins names no folder"
                                : absl::StrCat("is in none of this server's --codec_plugins (",
                                               absl::StrJoin(folders, ":"), ")");
  return absl::NotFoundError(
      absl::StrCat(path.field, ": codec plug-in ", PrintableLine(name), ": ", where));
}

}  // namespace

std::string DataNames(const Experiment& experiment) {
  Experiment copy = experiment;
  return absl::StrCat("the data",
                      absl::StrJoin(StagePathsOf(&copy).data, "", [](std::string* out, auto& path) {
                        absl::StrAppend(out, ", ", path.field, ": ", PrintableLine(*path.value));
                      }));
}

absl::Status ConfinePaths(const AllowedPaths& allowed, bool reads_data, Experiment* experiment) {
  const StagePaths paths = StagePathsOf(experiment);
  for (const StagePath& path : paths.plugins) {
    RETURN_IF_ERROR(FindLibrary(allowed.codec_plugins, path));
  }
  for (const StagePath& path : paths.data) {
    if (!reads_data && IsHubId(*path.value)) continue;
    RETURN_IF_ERROR(FollowHubId(path));
    RETURN_IF_ERROR(ConfineBelow(allowed.data, "--data", path));
    if (path.has_files) RETURN_IF_ERROR(ConfineLinks(allowed.data, "--data", path));
  }
  for (const StagePath& path : paths.state) {
    RETURN_IF_ERROR(ConfineBelow(allowed.state, "--state", path));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
