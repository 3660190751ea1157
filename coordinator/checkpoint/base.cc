#include "coordinator/checkpoint/base.h"

#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/file.h"
#include "base/hub_cache.h"
#include "base/sha256.h"
#include "base/status.h"
#include "coordinator/checkpoint/manifest.h"
#include "models/file_tensors.h"

namespace thinwire {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
// Number of folders that may stand behind each other.
constexpr int kMostBases = 16;

absl::StatusOr<ModelFolder> OpenBehind(const std::string& dir, int behind);

// Returns the tensors of the base by the names that the model's files have for them.
absl::StatusOr<std::map<std::string, ModelFolder::Entry>> EntriesOf(const CheckpointBase& base,
                                                                    const ModelFolder& folder) {
  std::map<std::string, std::string> wanted;
  for (const BaseTensor& tensor : base.tensors()) wanted[tensor.name()] = tensor.sha256();
  std::map<std::string, ModelFolder::Entry> entries;
  for (const auto& [name, entry] : folder.tensors()) {
    for (const std::string& meaning : MeaningsOf(name)) {
      const auto found = wanted.find(meaning);
      if (found == wanted.end()) continue;
      ModelFolder::Entry known = entry;
      known.sha256 = found->second;
      entries.insert({meaning, std::move(known)});
    }
  }
  for (const auto& [name, digest] : wanted) {
    if (entries.count(name) > 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(folder.dir(), ": has no ", name, ", with which the run began"));
  }
  return entries;
}

// Returns where the base's folder is on this machine, if it is.
std::string PathOf(const CheckpointBase& base) {
  const absl::StatusOr<std::string> found = HubFolderOr(base.init());
  return found.ok() ? *found : base.init();
}

absl::StatusOr<ModelFolder> WithBaseBehind(ModelFolder checkpoint, const CheckpointBase& base,
                                           int behind) {
  const std::string of =
      absl::StrCat(checkpoint.dir(), ": its frozen parameters are those of init");
  absl::StatusOr<ModelFolder> folder = OpenBehind(PathOf(base), behind);
  if (!folder.ok()) return Annotated(folder.status(), of);
  absl::StatusOr<std::map<std::string, ModelFolder::Entry>> entries = EntriesOf(base, *folder);
  if (!entries.ok()) return Annotated(entries.status(), of);
  checkpoint.Add(*std::move(folder), *std::move(entries));
  return checkpoint;
}

// Opens a folder, which stands behind that many others.
absl::StatusOr<ModelFolder> OpenBehind(const std::string& dir, int behind) {
  if (behind > kMostBases) {
    return absl::DataLossError(absl::StrCat(dir, ": stands behind ", kMostBases,
                                            " checkpoints, each the base of the one before"));
  }
  ASSIGN_OR_RETURN(ModelFolder folder, ModelFolder::Open(dir));
  const std::string path = absl::StrCat(dir, "/", kManifestFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return folder;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const absl::StatusOr<CheckpointManifest> manifest = ParseManifest(text, path);
  // Another program's folder may have a file of that name.
  if (!manifest.ok() || !manifest->has_base()) return folder;
  const bool is_here = std::filesystem::exists(PathOf(manifest->base()), ignored);
  if (manifest->base().at() != kAtCoordinator && !is_here) {
    return absl::FailedPreconditionError(absl::StrCat(
        dir, ": its frozen parameters are those of init: ", manifest->base().init(),
        " on the machines of the stages (init_at: stages), want a copy here, or the model of the "
        "run's end"));
  }
  return WithBaseBehind(std::move(folder), manifest->base(), behind + 1);
}

}  // namespace

absl::StatusOr<ModelFolder> WithBase(ModelFolder checkpoint, const CheckpointBase& base) {
  return WithBaseBehind(std::move(checkpoint), base, /*behind=*/1);
}

absl::StatusOr<ModelFolder> OpenWeights(const std::string& dir) {
  return OpenBehind(dir, /*behind=*/0);
}

absl::Status KeepBase(const CheckpointBase& base, ModelFolder* folder) {
  ASSIGN_OR_RETURN(auto entries, EntriesOf(base, *folder));
  folder->KeepOnly(std::move(entries));
  return absl::OkStatus();
}

absl::StatusOr<std::string> DigestOfConfig(const std::string& dir) {
  const absl::StatusOr<std::string> text = ReadFile(dir + "/config.json");
  if (absl::IsNotFound(text.status())) return std::string();
  RETURN_IF_ERROR(text.status());
  return Sha256(*text);
}

absl::Status VerifyBase(const CheckpointBase& base) {
  ASSIGN_OR_RETURN(const ModelFolder folder, OpenWeights(PathOf(base)));
  ASSIGN_OR_RETURN(const auto entries, EntriesOf(base, folder));
  for (const auto& [name, entry] : entries) {
    RETURN_IF_ERROR(
        folder.Read(entry, kReadBytes, [](std::string_view) { return absl::OkStatus(); }));
  }
  return absl::OkStatus();
}

}  // namespace thinwire
