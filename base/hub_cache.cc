#include "base/hub_cache.h"

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/path.h"
#include "base/status.h"
#include "base/text.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

constexpr char kScheme[] = "hf:", kModels[] = "models--", kMain[] = "main";
constexpr size_t kCommitDigits = 40;

// A name in the hub.
struct HubName {
  std::string repository;  // "ORG/NAME", or "NAME" of the oldest ones
  std::string revision;    // a branch, a tag or a commit; empty: main
};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string CacheDir() {
  const std::pair<const char*, const char*> places[] = {{"HF_HUB_CACHE", ""},
                                                        {"HUGGINGFACE_HUB_CACHE", ""},
                                                        {"HF_HOME", "/hub"},
                                                        {"XDG_CACHE_HOME", "/huggingface/hub"}};
  for (const auto& [variable, below] : places) {
    const char* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return WithHome(absl::StrCat(value, below));
  }
  return WithHome("~/.cache/huggingface/hub");
}

// Accepts names between slashes of which none leads elsewhere.
bool AreNames(const std::string& text, size_t most) {
  const std::vector<std::string> names = absl::StrSplit(text, '/');
  for (const std::string& name : names) {
    if (name.empty() || name.front() == '.') return false;
    for (const char c : name) {
      const bool is_usual =
          absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
      if (!is_usual) return false;
    }
  }
  return names.size() <= most;
}

bool IsCommit(const std::string& revision) {
  if (revision.size() != kCommitDigits) return false;
  for (const char c : revision) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

absl::StatusOr<HubName> ParseHubId(const std::string& id) {
  const std::string rest = IsHubId(id) ? id.substr(sizeof(kScheme) - 1) : "";
  const size_t at = rest.find('@');
  const HubName name = {rest.substr(0, at), at == std::string::npos ? "" : rest.substr(at + 1)};
  const bool has_revision = at == std::string::npos || AreNames(name.revision, /*most=*/8);
  if (AreNames(name.repository, /*most=*/2) && has_revision) return name;
  return absl::InvalidArgumentError(
      absl::StrCat(PrintableLine(id), ": want hf:ORG/NAME or hf:ORG/NAME@REVISION"));
}

absl::Status NotCached(const std::string& id, const HubName& name, const std::string& cache) {
  const std::string revision =
      name.revision.empty() ? "" : absl::StrCat(" --revision ", name.revision);
  return absl::NotFoundError(absl::StrCat(id, ": is not in the cache ", cache,
                                          "; this downloads it: hf download ", name.repository,
                                          revision));
}

}  // namespace

absl::StatusOr<std::string> HubFolder(const std::string& id) {
  ASSIGN_OR_RETURN(const HubName name, ParseHubId(id));
  const std::string cache = CacheDir();
  const std::string model =
      absl::StrCat(cache, "/", kModels, absl::StrReplaceAll(name.repository, {{"/", "--"}}));
  std::string commit = name.revision;
  if (!IsCommit(commit)) {
    const std::string& ref = commit.empty() ? kMain : commit;
    const absl::StatusOr<std::string> content = ReadFile(absl::StrCat(model, "/refs/", ref));
    if (absl::IsNotFound(content.status())) return NotCached(id, name, cache);
    RETURN_IF_ERROR(content.status());
    commit = std::string(absl::StripAsciiWhitespace(*content));
    if (!IsCommit(commit)) {
      return absl::DataLossError(
          absl::StrCat(model, "/refs/", ref, ": is ", PrintableLine(commit), ", want a commit"));
    }
  }
  std::string folder = absl::StrCat(model, "/snapshots/", commit);
  if (!IsFolder(folder)) return NotCached(id, name, cache);
  return folder;
}

absl::StatusOr<std::string> HubFolderOr(const std::string& path) {
  return IsHubId(path) ? HubFolder(path) : absl::StatusOr<std::string>(path);
}

std::string HubIdOr(const std::string& folder) {
  const std::vector<std::string> parts = absl::StrSplit(folder, '/');
  const size_t n = parts.size();
  if (n < 3 || parts[n - 2] != "snapshots" || !IsCommit(parts[n - 1])) return folder;
  const std::string& model = parts[n - 3];
  if (model.compare(0, sizeof(kModels) - 1, kModels) != 0) return folder;
  const std::string repository =
      absl::StrReplaceAll(model.substr(sizeof(kModels) - 1), {{"--", "/"}});
  const std::string id = absl::StrCat(kScheme, repository, "@", parts[n - 1]);
  const absl::StatusOr<std::string> found = HubFolder(id);
  std::error_code ignored;  // a folder that is not there is no other's
  return found.ok() && fs::equivalent(*found, folder, ignored) ? id : folder;
}

}  // namespace thinwire
