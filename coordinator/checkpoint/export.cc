#include "coordinator/checkpoint/export.h"

#include <cerrno>
#include <cstdio>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/model_folder.h"
#include "base/status.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/folders.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

// Returns the names of the regular files there, without the index, the manifest and the files that
// it names.
absl::StatusOr<std::vector<std::string>> FilesBeside(const std::string& checkpoint,
                                                     const CheckpointManifest& manifest) {
  std::set<std::string> known = {kManifestFile, kModelIndex};
  for (const CheckpointFile& file : manifest.files()) known.insert(file.name());
  return NamesIn(checkpoint, [&known](const fs::directory_entry& entry) {
    std::error_code ignored;
    return known.count(entry.path().filename().string()) == 0 && entry.is_regular_file(ignored);
  });
}

absl::Status Copy(const std::string& from, const std::string& to,
                  const std::function<absl::Status()>& check) {
  return ReplaceFile(to, [&](const FileSink& sink) {
    return ReadFile(from, [&](std::string_view piece) {
      RETURN_IF_ERROR(check());
      return sink(piece);
    });
  });
}

// Writes the checkpoint's files of the model to `dir`, and returns their names.
absl::StatusOr<std::vector<std::string>> GatherFiles(const std::string& checkpoint,
                                                     const CheckpointManifest& manifest,
                                                     const std::string& dir,
                                                     const std::function<absl::Status()>& check,
                                                     const Mergings& mergings) {
  std::vector<std::string> model;
  for (const CheckpointFile& file : manifest.files()) {
    if (file.tensors() != kModelTensors) continue;
    const std::string from = absl::StrCat(checkpoint, "/", file.name());
    const std::string to = absl::StrCat(dir, "/", file.name());
    RETURN_IF_ERROR(mergings.empty() ? Copy(from, to, check)
                                     : MergeFile(from, to, mergings, check));
    model.push_back(file.name());
  }
  return model;
}

// Does the same for a model of which the checkpoint has a part.
absl::StatusOr<std::vector<std::string>> GatherWhole(const WholeModel& whole,
                                                     const std::string& dir,
                                                     const std::function<absl::Status()>& check,
                                                     const Mergings& mergings) {
  std::vector<std::string> model;
  const int files = static_cast<int>(whole.names.size());
  for (int i = 0; i < files; ++i) {
    const std::string name = ShardName(i, files);
    RETURN_IF_ERROR(MergeTensors(whole.folder, whole.names[static_cast<size_t>(i)],
                                 absl::StrCat(dir, "/", name), mergings, check));
    model.push_back(name);
  }
  return model;
}

// Fills the empty folder `dir`.
absl::Status Gather(const std::string& checkpoint, const CheckpointManifest& manifest,
                    const std::string& dir, const std::function<absl::Status()>& check,
                    const Mergings& mergings, const WholeModel* whole) {
  ASSIGN_OR_RETURN(const std::vector<std::string> model,
                   whole != nullptr ? GatherWhole(*whole, dir, check, mergings)
                                    : GatherFiles(checkpoint, manifest, dir, check, mergings));
  if (model.empty()) {
    return absl::DataLossError(
        absl::StrCat(checkpoint, "/", kManifestFile, ": names no file of the model"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> beside, FilesBeside(checkpoint, manifest));
  for (const std::string& name : beside) {
    RETURN_IF_ERROR(Copy(absl::StrCat(checkpoint, "/", name), absl::StrCat(dir, "/", name), check));
  }
  RETURN_IF_ERROR(WriteModelIndex(dir, model));
  RETURN_IF_ERROR(ModelFolder::Open(dir).status());
  return SyncFolder(dir);
}

}  // namespace

absl::Status CheckExportFolder(const std::string& out) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(out, error);
  if (!fs::exists(there) || (fs::is_directory(there) && fs::is_empty(out, error))) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat(out, ": is there already, want a new or an empty folder"));
}

absl::Status ExportModel(const std::string& checkpoint, const CheckpointManifest& manifest,
                         const std::string& out, const std::function<absl::Status()>& check,
                         const Mergings& mergings, const WholeModel* whole) {
  RETURN_IF_ERROR(CheckExportFolder(out));
  const std::string temporary = out + ".tmp";
  ASSIGN_OR_RETURN(const bool is_new, MakeFolder(temporary));
  if (!is_new) {
    return absl::AlreadyExistsError(absl::StrCat(
        temporary, ": is there already, as an export leaves it that was killed; remove it"));
  }
  absl::Status status = Gather(checkpoint, manifest, temporary, check, mergings, whole);
  if (status.ok() && std::rename(temporary.c_str(), out.c_str()) != 0) {
    status = FileError(out, "cannot make the folder", errno);
  }
  std::error_code ignored;
  if (!status.ok()) fs::remove_all(temporary, ignored);
  return status;
}

}  // namespace thinwire
