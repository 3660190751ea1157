#include "data/file_list.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

namespace fs = std::filesystem;

bool IsPattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

// Returns whether a file is one of a token cache, a document store or an index of samples, or a
// draft of one.
bool IsMadeHere(const std::string& name) {
  constexpr size_t kDigits = 64;
  const size_t begin = absl::StartsWith(name, ".") ? 1 : 0;
  const size_t end = std::min(name.find_first_not_of("0123456789abcdef", begin), name.size());
  const std::string rest = name.substr(end);
  return end - begin == kDigits &&
         (absl::StartsWith(rest, ".tokens") || absl::StartsWith(rest, ".packs"));
}

// Adds the regular files of a folder that `takes` wants, of those below too if `goes_down`.
template <typename Iterator, typename Takes>
absl::Status AddFiles(const fs::path& folder, const Takes& takes, std::vector<std::string>* files) {
  std::error_code error;
  Iterator entry(folder, error);
  for (; !error && entry != Iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;  // whoever reads the file reports it
    if (entry->is_regular_file(ignored) && takes(name) && !IsMadeHere(name)) {
      files->push_back(entry->path().string());
    }
    if constexpr (std::is_same_v<Iterator, fs::recursive_directory_iterator>) {
      if (absl::StartsWith(name, ".")) entry.disable_recursion_pending();
    }
  }
  return error ? FileError(folder.string(), "cannot read", error.value()) : absl::OkStatus();
}

absl::Status NothingAt(const std::string& field, const std::string& path, const char* what) {
  return absl::NotFoundError(absl::StrCat("cannot read ", field, " ", path, ": ", what));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FilesAt(const std::string& field,
                                                 const std::string& path) {
  std::error_code ignored;
  const fs::path asked(path);
  const std::string name = asked.filename().string();
  std::vector<std::string> files;
  if (fs::is_directory(asked, ignored)) {
    const auto is_shown = [](const std::string& entry) { return !absl::StartsWith(entry, "."); };
    RETURN_IF_ERROR(AddFiles<fs::recursive_directory_iterator>(asked, is_shown, &files));
    if (files.empty()) return NothingAt(field, path, "the folder has no files");
  } else if (fs::exists(asked, ignored)) {
    return std::vector<std::string>{path};
  } else if (!IsPattern(name)) {
    return NothingAt(field, path, "there is no such file");
  } else {
    const fs::path folder = asked.has_parent_path() ? asked.parent_path() : ".";
    const auto matches = [&](const std::string& entry) {
      return fnmatch(name.c_str(), entry.c_str(), FNM_PERIOD) == 0;
    };
    RETURN_IF_ERROR(AddFiles<fs::directory_iterator>(folder, matches, &files));
    if (files.empty()) return NothingAt(field, path, "no file there matches");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace thinwire
