#include "coordinator/checkpoint/export.h"

#include <cerrno>
#include <cstdio>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "coordinator/checkpoint/folder.h"
#include "coordinator/files/folders.h"
#include "coordinator/files/model_folder.h"

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

// Fills the empty folder `dir`.
absl::Status Gather(const std::string& checkpoint, const CheckpointManifest& manifest,
                    const std::string& dir, const std::function<absl::Status()>& check,
                    const Mergings& mergings, const Originals* originals) {
  std::vector<std::string> model;
  for (const CheckpointFile& file : manifest.files()) {
    if (file.tensors() == kModelTensors) model.push_back(file.name());
  }
  if (model.empty()) {
    return absl::DataLossError(
        absl::StrCat(checkpoint, "/", kManifestFile, ": names no file of the model"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> beside, FilesBeside(checkpoint, manifest));
  for (const std::string& name : beside) {
    RETURN_IF_ERROR(Copy(absl::StrCat(checkpoint, "/", name), absl::StrCat(dir, "/", name), check));
  }
  for (const std::string& name : model) {
    const std::string from = absl::StrCat(checkpoint, "/", name), to = absl::StrCat(dir, "/", name);
    RETURN_IF_ERROR(mergings.empty() ? Copy(from, to, check)
                                     : MergeFile(from, to, mergings, originals, check));
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
                         const Mergings& mergings, const Originals* originals) {
  RETURN_IF_ERROR(CheckExportFolder(out));
  const std::string temporary = out + ".tmp";
  ASSIGN_OR_RETURN(const bool is_new, MakeFolder(temporary));
  if (!is_new) {
    return absl::AlreadyExistsError(absl::StrCat(
        temporary, ": is there already, as an export leaves it that was killed; remove it"));
  }
  absl::Status status = Gather(checkpoint, manifest, temporary, check, mergings, originals);
  if (status.ok() && std::rename(temporary.c_str(), out.c_str()) != 0) {
    status = FileError(out, "cannot make the folder", errno);
  }
  std::error_code ignored;
  if (!status.ok()) fs::remove_all(temporary, ignored);
  return status;
}

}  // namespace thinwire
