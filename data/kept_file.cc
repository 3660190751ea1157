#include "data/kept_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace thinwire {
namespace {

std::string TemporaryFolder() {
  std::error_code ignored;
  return std::filesystem::temp_directory_path(ignored).string();
}

// A new file, and why it is not complete.
struct Draft {
  KeptFile kept;
  absl::Status status, of_file;  // the latter: it could not be made or written
};

// Makes a file whose path is like `pattern`, and writes it. It gets the path `name`. If that is
// empty the file loses its own at once, so that a process that is killed leaves none.
Draft MakeDraft(std::string pattern, const std::string& name, const FileWriter& write) {
  const int file = mkostemp(pattern.data(), O_CLOEXEC);
  Draft draft{{pattern, OwnedDescriptor(file)}, {}, {}};
  if (file < 0) {
    draft.status = draft.of_file = FileError(pattern, "cannot keep tokens", errno);
    return draft;
  }
  const bool has_name = !name.empty();
  if (!has_name) std::remove(pattern.c_str());
  fchmod(file, 0644);  // other readers of the text may use it, too
  draft.status = write(draft.kept, &draft.of_file);
  const bool is_kept = has_name && draft.status.ok();
  const bool is_named = is_kept && std::rename(pattern.c_str(), name.c_str()) == 0;
  if (has_name && !is_named) std::remove(pattern.c_str());
  return draft;
}

absl::StatusOr<KeptFile> Checked(Draft draft, const FileCheck& is_good) {
  RETURN_IF_ERROR(draft.status);
  if (is_good(draft.kept)) return std::move(draft.kept);
  return absl::DataLossError(absl::StrCat(draft.kept.path, " is not what was written to it"));
}

}  // namespace

// Several processes may write the same file at once: each writes its own, which is hidden from who
// lists the folder, and renames it when complete.
absl::StatusOr<KeptFile> OpenOrWrite(const std::string& folder, const std::string& name,
                                     const FileCheck& is_good, const FileWriter& write) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (absl::StatusOr<OwnedDescriptor> file = OpenRegular(path); file.ok()) {
    KeptFile kept{path, *std::move(file)};
    if (is_good(kept)) return kept;
  }
  Draft draft = MakeDraft(absl::StrCat(folder, "/.", name, ".XXXXXX"), path, write);
  if (draft.of_file.ok()) return Checked(std::move(draft), is_good);
  const std::string spare = absl::StrCat(TemporaryFolder(), "/thinwire.XXXXXX");
  return Checked(MakeDraft(spare, "", write), is_good);
}

}  // namespace thinwire
